#include "io/calls.h"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/system_call.h"

namespace weft::io {
namespace {

inline long result(long n) noexcept { return n >= 0 ? n : -errno; }

}  // namespace

[[gnu::noinline]] long call_read(int fd, void* to, std::size_t size) noexcept { return result(::read(fd, to, size)); }

[[gnu::noinline]] long call_write(int fd, const void* from, std::size_t size) noexcept {
  return result(::write(fd, from, size));
}

// A write to a pipe has no flag for it: the signal is held back, and taken if it came.
[[gnu::noinline]] long call_write_without_sigpipe(int fd, const void* from, std::size_t size) noexcept {
  sigset_t pipe_only;
  sigset_t before;
  sigset_t pending;
  ::sigemptyset(&pipe_only);
  ::sigaddset(&pipe_only, SIGPIPE);
  ::sigpending(&pending);
  const bool was_pending = ::sigismember(&pending, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
  const long n = result(::write(fd, from, size));
  if (n == -EPIPE && !was_pending) {
    const timespec at_once{};
    while (::sigtimedwait(&pipe_only, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return n;
}

[[gnu::noinline]] long call_pread(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept {
  return result(::pread(fd, to, size, static_cast<off_t>(offset)));
}

[[gnu::noinline]] long call_pwrite(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept {
  return result(::pwrite(fd, from, size, static_cast<off_t>(offset)));
}

[[gnu::noinline]] long call_recv(int fd, void* to, std::size_t size) noexcept {
  return arch::system_call([&] { return ::recv(fd, to, size, 0); }, SYS_recvfrom, fd, arch::as_argument(to), static_cast<long>(size), 0);
}

[[gnu::noinline]] long call_send(int fd, const void* from, std::size_t size) noexcept {
  return arch::system_call([&] { return ::send(fd, from, size, MSG_NOSIGNAL); }, SYS_sendto, fd, arch::as_argument(from),
                           static_cast<long>(size), MSG_NOSIGNAL);
}

[[gnu::noinline]] long call_sendmsg(int fd, const iovec* parts, std::size_t count) noexcept {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  return result(::sendmsg(fd, &message, MSG_NOSIGNAL));
}

[[gnu::noinline]] long call_recvfrom(int fd, void* to, std::size_t size, sockaddr* from, socklen_t* from_size) noexcept {
  return result(::recvfrom(fd, to, size, 0, from, from_size));
}

[[gnu::noinline]] long call_sendto(int fd, const void* from, std::size_t size, const sockaddr* to, socklen_t to_size) noexcept {
  return result(::sendto(fd, from, size, MSG_NOSIGNAL, to, to_size));
}

[[gnu::noinline]] long call_accept(int fd, sockaddr* from, socklen_t* from_size) noexcept {
  return result(::accept4(fd, from, from_size, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

[[gnu::noinline]] long call_connect(int fd, const sockaddr* to, socklen_t to_size) noexcept {
  return result(::connect(fd, to, to_size));
}

[[gnu::noinline]] long call_socket(int family, int type) noexcept {
  return result(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

[[gnu::noinline]] long call_setsockopt(int fd, int level, int name, int value) noexcept {
  return result(::setsockopt(fd, level, name, &value, sizeof value));
}

[[gnu::noinline]] long call_shutdown_write(int fd) noexcept { return result(::shutdown(fd, SHUT_WR)); }

[[gnu::noinline]] long call_poll(int fd, short events) noexcept {
  pollfd p{fd, events, 0};
  const long n = result(::poll(&p, 1, 0));
  return n <= 0 ? n : static_cast<unsigned short>(p.revents);
}

}  // namespace weft::io
