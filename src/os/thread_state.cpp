#include "os/thread_state.h"

#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "base/fatal.h"

namespace weft::os {

bool is_asleep(pid_t tid) noexcept {
  base::text path;
  path << "/proc/self/task/" << static_cast<std::int64_t>(tid) << "/stat";
  char name[64] = {};
  path.view().copy(name, sizeof name - 1);
  const int fd = ::open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char line[128];
  const ssize_t n = ::read(fd, line, sizeof line);
  ::close(fd);
  if (n <= 0) return false;
  // "tid (name) S ...": a name may hold anything, and has at most 15 characters.
  const std::string_view text(line, static_cast<std::size_t>(n));
  const auto end = text.rfind(')');
  return end != text.npos && end + 2 < text.size() && text[end + 2] != 'R';
}

}  // namespace weft::os
