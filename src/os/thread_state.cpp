#include "os/thread_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <string_view>

#include "base/fatal.h"

namespace weft::os {
namespace {

// The beginning of /proc/self/task/<tid>/<name>; empty if it cannot be read.
class task_file {
 public:
  task_file(pid_t tid, const char* name) noexcept {
    base::text path;
    path << "/proc/self/task/" << static_cast<std::int64_t>(tid) << "/" << name;
    char terminated[64] = {};
    path.view().copy(terminated, sizeof terminated - 1);
    const int fd = ::open(terminated, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = ::read(fd, line_, sizeof line_);
    ::close(fd);
    if (n > 0) size_ = static_cast<std::size_t>(n);
  }
  std::string_view text() const noexcept { return {line_, size_}; }

 private:
  char line_[256];
  std::size_t size_ = 0;
};

// "tid (name) S ...": a name may hold anything, and has at most 15 characters.
thread_view::activity activity_of(pid_t tid) noexcept {
  const task_file file(tid, "stat");
  const std::string_view text = file.text();
  const auto end = text.rfind(')');
  if (end == text.npos || end + 2 >= text.size()) return thread_view::unknown;
  return text[end + 2] == 'R' ? thread_view::running : thread_view::asleep;
}

// Takes the last word of a text, "0x..." and a number in hexadecimal digits. 0: it is something else.
std::uintptr_t take_last_number(std::string_view& text) noexcept {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const std::string_view word = text.substr(text.rfind(' ') + 1);  // npos + 1: all of it
  text.remove_suffix(word.size());
  std::uintptr_t n = 0;
  if (!word.starts_with("0x")) return 0;
  const auto [end, error] = std::from_chars(word.data() + 2, word.data() + word.size(), n, 16);
  return error == std::errc() && end == word.data() + word.size() ? n : 0;
}

}  // namespace

bool is_asleep(pid_t tid) noexcept { return activity_of(tid) == thread_view::asleep; }

// "running", or "number arguments sp pc", or, asleep outside of a system call, "-1 sp pc".
thread_view look_at_thread(pid_t tid) noexcept {
  const task_file file(tid, "syscall");
  std::string_view text = file.text();
  if (text.starts_with("running")) return {.now = thread_view::running};
  if (text.empty()) return {.now = activity_of(tid)};
  thread_view v{.now = thread_view::asleep};
  v.pc = take_last_number(text);
  v.sp = take_last_number(text);
  return v;
}

}  // namespace weft::os
