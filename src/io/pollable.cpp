#include <weft/pollable.h>

#include <cerrno>

#include <fcntl.h>
#include <poll.h>

#include "io/calls.h"
#include "io/error.h"
#include "io/fd.h"

namespace weft {
namespace {

// Whoever waits here may not have read everything the last time, so the poller's edges are only a hint when to look: the
// answer is poll(2)'s.
void wait_for(io::fd* fd, io::direction which, short events, std::error_code& ec) {
  const io::operation op(fd, which);
  int error = op.error();
  while (error == 0) {
    const long now = io::call_poll(fd->number(), events);
    if (now == -EINTR) continue;
    if (now < 0) {
      error = static_cast<int>(-now);
    } else if ((now & POLLNVAL) != 0) {
      error = EBADF;
    } else if (now != 0) {
      break;
    } else {
      error = fd->wait(which);
    }
  }
  io::set(ec, error);
}

}  // namespace

pollable::pollable(int fd) {
  if (::fcntl(fd, F_GETFD) < 0) throw std::system_error(errno, std::system_category(), "weft::pollable");
  fd_ = new io::fd(fd, io::ownership::borrowed);
}

void pollable::wait_readable(std::error_code& ec) { wait_for(fd_, io::reading, POLLIN | POLLRDHUP, ec); }

void pollable::wait_writable(std::error_code& ec) { wait_for(fd_, io::writing, POLLOUT, ec); }

void pollable::wait_readable() {
  std::error_code ec;
  wait_readable(ec);
  io::throw_if(ec, "weft::pollable::wait_readable");
}

void pollable::wait_writable() {
  std::error_code ec;
  wait_writable(ec);
  io::throw_if(ec, "weft::pollable::wait_writable");
}

}  // namespace weft
