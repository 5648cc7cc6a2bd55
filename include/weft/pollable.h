// Waiting for any file descriptor that poll(2) knows, made by whomever: sockets, pipes, eventfds, timerfds, the
// descriptors of other libraries. A goroutine that waits holds no thread.
#pragma once

#include <system_error>

#include <weft/detail/io_object.h>

namespace weft {

// Does not own the descriptor and does not change it; the pollable is destroyed or closed before the descriptor is.
class pollable : public detail::io_object {
 public:
  explicit pollable(int fd);

  // Returns when a read, or a write, would not block (also because of an end of file or an error). Returns at once if
  // that is so already.
  void wait_readable();
  void wait_readable(std::error_code& ec);
  void wait_writable();
  void wait_writable(std::error_code& ec);
};

}  // namespace weft
