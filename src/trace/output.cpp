#include "trace/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace weft::trace {

output::~output() {
  if (fd_ >= 0) ::close(fd_);
}

void output::open(const std::string& path, const char* who) {
  error_.clear();
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw std::system_error(errno, std::system_category(), std::string(who) + ": " + path);
}

void output::write(std::string& text) {
  for (std::size_t at = 0; at < text.size() && !error_;) {
    const ssize_t n = ::write(fd_, text.data() + at, text.size() - at);
    if (n > 0) {
      at += static_cast<std::size_t>(n);
    } else if (n == 0) {
      fail(std::errc::no_space_on_device);
    } else if (errno != EINTR) {
      error_ = {errno, std::system_category()};
    }
  }
  text.clear();
}

void output::write_if_enough(std::string& text) {
  constexpr std::size_t enough = 256 * 1024;
  if (text.size() >= enough) write(text);
}

std::error_code output::close() {
  if (::close(std::exchange(fd_, -1)) != 0 && !error_) error_ = {errno, std::system_category()};
  return error_;
}

}  // namespace weft::trace
