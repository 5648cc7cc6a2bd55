// Making sockets, and what all kinds of them have in common.
#pragma once

#include <chrono>
#include <memory>

#include <weft/net.h>

#include "io/fd.h"

namespace weft::net {

// The way into the objects that users see.
struct access {
  template <class Object>
  static Object make(io::fd* fd) noexcept {
    return Object(fd);
  }
  static io::fd* fd_of(detail::io_object& o) noexcept { return static_cast<opened&>(o).fd_; }

 private:
  struct opened : detail::io_object {
    using io_object::fd_;
  };
};

struct releaser {
  void operator()(io::fd* fd) const noexcept { fd->release(); }
};
using socket_ptr = std::unique_ptr<io::fd, releaser>;

// A new socket. Null: `error` says why.
socket_ptr open_socket(int family, int type, int& error);

// A number that is a socket already (from accept).
socket_ptr adopt_socket(int number, int family, bool stream);

int set_no_delay(int number, bool on) noexcept;
int set_keep_alive(int number, std::chrono::nanoseconds idle) noexcept;

int bind_to(int number, const address& a) noexcept;

enum class side { local, remote };
address address_of(io::fd* fd, side which, std::error_code& ec);
address address_of(io::fd* fd, side which, const char* what);
// Of a TCP connection, before others have it.
void remember_peer(io::fd& fd, const void* native, std::size_t size) noexcept;

// Reads and writes of connected sockets.
std::size_t receive(io::fd* fd, mutable_buffer to, std::error_code& ec);

}  // namespace weft::net
