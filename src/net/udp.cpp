#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>

#include <weft/net.h>

#include "io/attempts.h"
#include "io/calls.h"
#include "io/error.h"
#include "net/host_port.h"
#include "net/socket.h"

namespace weft::net {
namespace {

// Calls f with the address as a socket of this family takes it.
template <class F>
auto with_native(int family, const address& a, F f) {
  if (family == AF_INET6 && a.family() == AF_INET) {
    const sockaddr_in6 v6 = mapped(a);
    return f(reinterpret_cast<const sockaddr*>(&v6), static_cast<socklen_t>(sizeof v6));
  }
  return f(static_cast<const sockaddr*>(a.native()), static_cast<socklen_t>(a.native_size()));
}

socket_ptr bind_datagram(const address& a, int& error) {
  socket_ptr s = open_socket(a.family(), SOCK_DGRAM, error);
  if (s == nullptr) return nullptr;
  if (a.family() == AF_INET6) error = static_cast<int>(-io::call_setsockopt(s->number(), IPPROTO_IPV6, IPV6_V6ONLY, 0));
  if (error == 0) error = bind_to(s->number(), a);
  return error == 0 ? std::move(s) : nullptr;
}

}  // namespace

std::pair<std::size_t, address> udp_socket::recv_from(mutable_buffer to, std::error_code& ec) {
  io::operation op(fd_, io::reading);
  sockaddr_storage from{};
  socklen_t from_size = 0;
  long n = -op.error();
  if (n == 0) {
    n = op.run([&](int number) {
      from_size = sizeof from;
      return io::call_recvfrom(number, to.data(), to.size(), reinterpret_cast<sockaddr*>(&from), &from_size);
    });
  }
  io::set(ec, n < 0 ? static_cast<int>(-n) : 0);
  if (n < 0) return {};
  return {static_cast<std::size_t>(n), address::from_native(&from, from_size)};
}

// Repeats call(number). That the receiver's queue has room again is no event of a Unix socket that is not connected to it.
template <class Call>
static long send_one(io::operation& op, Call call) {
  if (op.file().family != AF_UNIX) return op.run(call);
  using namespace std::chrono_literals;
  for (io::attempts again(io::writing, 100us, 10ms);;) {
    const long n = call(op.file().number());
    if (n == -EINTR) continue;
    if (n != -EAGAIN) return n;
    if (const int error = again.pause(op.file())) return -error;
  }
}

std::size_t udp_socket::send_to(const_buffer from, const address& to, std::error_code& ec) {
  io::operation op(fd_, io::writing);
  long n = -op.error();
  if (n == 0) {
    n = with_native(op.file().family, to, [&](const sockaddr* native, socklen_t size) {
      return send_one(op, [&](int number) { return io::call_sendto(number, from.data(), from.size(), native, size); });
    });
  }
  io::set(ec, n < 0 ? static_cast<int>(-n) : 0);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

void udp_socket::connect(const address& peer, std::error_code& ec) {
  const io::brief_use use(fd_);
  long n = -use.error();
  if (n == 0) {
    n = with_native(use.file().family, peer, [&](const sockaddr* native, socklen_t size) {
      return io::call_connect(use.file().number(), native, size);
    });
  }
  io::set(ec, n < 0 ? static_cast<int>(-n) : 0);
}

std::size_t udp_socket::read(mutable_buffer to, std::error_code& ec) { return receive(fd_, to, ec); }

std::size_t udp_socket::write(const_buffer from, std::error_code& ec) {
  io::operation op(fd_, io::writing);
  long n = -op.error();
  if (n == 0) n = op.run([&](int number) { return io::call_send(number, from.data(), from.size()); });
  io::set(ec, n < 0 ? static_cast<int>(-n) : 0);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

std::pair<std::size_t, address> udp_socket::recv_from(mutable_buffer to) {
  std::error_code ec;
  auto received = recv_from(to, ec);
  io::throw_if(ec, "weft::net::udp_socket::recv_from");
  return received;
}

std::size_t udp_socket::send_to(const_buffer from, const address& to) {
  std::error_code ec;
  const std::size_t n = send_to(from, to, ec);
  io::throw_if(ec, "weft::net::udp_socket::send_to");
  return n;
}

void udp_socket::connect(const address& peer) {
  std::error_code ec;
  connect(peer, ec);
  io::throw_if(ec, "weft::net::udp_socket::connect");
}

std::size_t udp_socket::read(mutable_buffer to) {
  std::error_code ec;
  const std::size_t n = receive(fd_, to, ec);
  io::throw_if(ec, "weft::net::udp_socket::read");
  return n;
}

std::size_t udp_socket::write(const_buffer from) {
  std::error_code ec;
  const std::size_t n = write(from, ec);
  io::throw_if(ec, "weft::net::udp_socket::write");
  return n;
}

address udp_socket::local_address(std::error_code& ec) const { return address_of(fd_, side::local, ec); }
address udp_socket::remote_address(std::error_code& ec) const { return address_of(fd_, side::remote, ec); }
address udp_socket::local_address() const { return address_of(fd_, side::local, "weft::net::udp_socket::local_address"); }
address udp_socket::remote_address() const { return address_of(fd_, side::remote, "weft::net::udp_socket::remote_address"); }

udp_socket bind_udp(std::string_view host_port, std::error_code& ec) {
  const std::vector<address> candidates = resolve(host_port, purpose::bind_datagrams, detail::no_deadline, ec);
  if (ec) return {};
  int error = EINVAL;
  for (const address& a : candidates) {
    if (socket_ptr s = bind_datagram(a, error)) return access::make<udp_socket>(s.release());
    if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) break;
  }
  io::set(ec, error);
  return {};
}

udp_socket bind_udp(std::string_view host_port) {
  std::error_code ec;
  udp_socket s = bind_udp(host_port, ec);
  if (ec) throw std::system_error(ec, "weft::net::bind_udp: " + std::string(host_port));
  return s;
}

udp_socket bind_unixgram(std::string_view path, std::error_code& ec) {
  address a;
  int error = make_path(path, a);
  socket_ptr s = error == 0 ? bind_datagram(a, error) : nullptr;
  io::set(ec, error);
  if (s == nullptr) return {};
  if (!path.starts_with('@')) s->unlink_path = path;
  return access::make<udp_socket>(s.release());
}

udp_socket bind_unixgram(std::string_view path) {
  std::error_code ec;
  udp_socket s = bind_unixgram(path, ec);
  if (ec) throw std::system_error(ec, "weft::net::bind_unixgram: " + std::string(path));
  return s;
}

}  // namespace weft::net
