#include "net/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/calls.h"
#include "io/error.h"

namespace weft::net {

socket_ptr adopt_socket(int number, int family, bool stream) {
  std::unique_ptr<int, void (*)(int*)> closer(&number, [](int* n) { ::close(*n); });
  socket_ptr s(new io::fd(number));
  closer.release();
  s->family = family;
  s->stream = stream;
  s->tcp = stream && family != AF_UNIX;
  return s;
}

socket_ptr open_socket(int family, int type, int& error) {
  const long number = io::call_socket(family, type);
  error = number < 0 ? static_cast<int>(-number) : 0;
  if (error != 0) return nullptr;
  return adopt_socket(static_cast<int>(number), family, type == SOCK_STREAM);
}

int set_no_delay(int number, bool on) noexcept {
  return static_cast<int>(-io::call_setsockopt(number, IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0));
}

int set_keep_alive(int number, std::chrono::nanoseconds idle) noexcept {
  const bool on = idle.count() > 0;
  long n = io::call_setsockopt(number, SOL_SOCKET, SO_KEEPALIVE, on ? 1 : 0);
  if (on && n == 0) {
    const auto seconds = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(idle).count());
    const int value = static_cast<int>(std::min<std::int64_t>(seconds, 32767));  // the most that Linux takes
    n = io::call_setsockopt(number, IPPROTO_TCP, TCP_KEEPIDLE, value);
    if (n == 0) n = io::call_setsockopt(number, IPPROTO_TCP, TCP_KEEPINTVL, value);
  }
  return static_cast<int>(-n);
}

[[gnu::noinline]] int bind_to(int number, const address& a) noexcept {
  return ::bind(number, static_cast<const sockaddr*>(a.native()), static_cast<socklen_t>(a.native_size())) == 0 ? 0 : errno;
}

namespace {

[[gnu::noinline]] int ask_address(int number, side which, address& out) noexcept {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* at = reinterpret_cast<sockaddr*>(&storage);
  if ((which == side::local ? ::getsockname(number, at, &size) : ::getpeername(number, at, &size)) != 0) return errno;
  out = address::from_native(&storage, size);
  return 0;
}

}  // namespace

address address_of(io::fd* fd, side which, std::error_code& ec) {
  const io::brief_use use(fd);
  address a;
  int error = use.error();
  if (which == side::remote && fd != nullptr && fd->peer_size != 0) {
    a = address::from_native(fd->peer.data(), fd->peer_size);
    error = 0;
  } else if (error == 0) {
    error = ask_address(use.file().number(), which, a);
  }
  io::set(ec, error);
  return a;
}

address address_of(io::fd* fd, side which, const char* what) {
  std::error_code ec;
  const address a = address_of(fd, which, ec);
  io::throw_if(ec, what);
  return a;
}

void remember_peer(io::fd& fd, const void* native, std::size_t size) noexcept {
  if (!fd.tcp || size > fd.peer.size()) return;
  std::memcpy(fd.peer.data(), native, size);
  fd.peer_size = static_cast<std::uint8_t>(size);
}

std::size_t receive(io::fd* fd, mutable_buffer to, std::error_code& ec) {
  ec.clear();
  io::operation op(fd, io::reading);
  int error = op.error();
  long n = 0;
  if (error == 0 && to.size() == 0 && fd->stream) return 0;  // would wait for a byte that has no place
  if (error == 0 && fd->take_drained()) error = fd->wait(io::reading);
  if (error == 0) {
    n = op.run([&](int number) { return io::call_recv(number, to.data(), to.size()); });
    if (n < 0) error = static_cast<int>(-n);
    if (n > 0 && fd->tcp && static_cast<std::size_t>(n) < to.size()) fd->note_short_read();
  }
  io::set(ec, error);
  return error == 0 ? static_cast<std::size_t>(n) : 0;
}

}  // namespace weft::net
