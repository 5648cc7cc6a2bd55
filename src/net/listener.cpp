#include <algorithm>
#include <cerrno>

#include <sys/socket.h>
#include <sys/stat.h>

#include <weft/net.h>

#include "io/attempts.h"
#include "io/calls.h"
#include "io/error.h"
#include "net/host_port.h"
#include "net/socket.h"
#include "os/clock.h"

namespace weft::net {
namespace {

using namespace std::chrono_literals;

// The connection that was to be accepted is gone, or the network has a message for it: the next one may be fine.
bool concerns_only_this_one(long n) noexcept {
  switch (-n) {
    case EINTR:
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

bool is_shortage(long n) noexcept { return n == -EMFILE || n == -ENFILE || n == -ENOBUFS || n == -ENOMEM; }

long accept_one(io::operation& op, sockaddr_storage& from, socklen_t& from_size) {
  // While there are no descriptors left; another connection that comes does not make it better.
  io::attempts shortage(io::reading, 5ms, 1s);
  for (;;) {
    const long n = op.run([&](int number) {
      from_size = sizeof from;
      return io::call_accept(number, reinterpret_cast<sockaddr*>(&from), &from_size);
    });
    if (n >= 0) return n;
    if (is_shortage(n)) {
      if (const int error = shortage.pause(op.file())) return -error;
    } else if (!concerns_only_this_one(n)) {
      return n;
    }
  }
}

[[gnu::noinline]] int start_listening(int number, int backlog) noexcept {
  return ::listen(number, backlog) == 0 ? 0 : errno;
}

int set_up_tcp(int number, const address& a, const listen_options& o) noexcept {
  int error = static_cast<int>(-io::call_setsockopt(number, SOL_SOCKET, SO_REUSEADDR, 1));
  if (error == 0 && o.reuse_port) error = static_cast<int>(-io::call_setsockopt(number, SOL_SOCKET, SO_REUSEPORT, 1));
  if (error == 0 && a.family() == AF_INET6) {
    error = static_cast<int>(-io::call_setsockopt(number, IPPROTO_IPV6, IPV6_V6ONLY, o.v6_only ? 1 : 0));
  }
  // Connections inherit these, so that they need no system call of their own.
  if (error == 0) error = set_no_delay(number, o.no_delay);
  if (error == 0) error = set_keep_alive(number, o.keep_alive);
  return error;
}

socket_ptr listen_at(const address& a, const listen_options& o, int& error) {
  socket_ptr s = open_socket(a.family(), SOCK_STREAM, error);
  if (s == nullptr) return nullptr;
  if (a.family() != AF_UNIX) error = set_up_tcp(s->number(), a, o);
  if (error == 0) error = bind_to(s->number(), a);
  if (error == 0) error = start_listening(s->number(), o.backlog);
  return error == 0 ? std::move(s) : nullptr;
}

}  // namespace

conn listener::accept(std::error_code& ec) {
  long n = 0;
  int family = 0;
  sockaddr_storage from{};
  socklen_t from_size = 0;
  {
    io::operation op(fd_, io::reading);
    n = op.error() != 0 ? -op.error() : accept_one(op, from, from_size);
    if (n >= 0) family = op.file().family;
  }
  io::set(ec, n < 0 ? static_cast<int>(-n) : 0);
  if (n < 0) return {};
  socket_ptr s = adopt_socket(static_cast<int>(n), family, true);
  remember_peer(*s, &from, from_size);
  return access::make<conn>(s.release());
}

conn listener::accept() {
  std::error_code ec;
  conn c = accept(ec);
  io::throw_if(ec, "weft::net::listener::accept");
  return c;
}

address listener::local_address(std::error_code& ec) const { return address_of(fd_, side::local, ec); }
address listener::local_address() const { return address_of(fd_, side::local, "weft::net::listener::local_address"); }

listener listen_tcp(std::string_view host_port, listen_options options, std::error_code& ec) {
  std::vector<address> candidates = resolve(host_port, purpose::listen, detail::no_deadline, ec);
  if (ec) return {};
  // Of a name that has both, IPv4: it is what most people mean. (The wildcard is both at once.)
  if (!host_port.starts_with(':')) {
    std::stable_partition(candidates.begin(), candidates.end(), [](const address& a) { return a.family() == AF_INET; });
  }
  int error = EINVAL;
  for (const address& a : candidates) {
    if (socket_ptr s = listen_at(a, options, error)) return access::make<listener>(s.release());
    if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) break;  // no IPv6 here, for instance
  }
  io::set(ec, error);
  return {};
}

listener listen_unix(std::string_view path, listen_options options, std::error_code& ec) {
  address a;
  int error = make_path(path, a);
  socket_ptr s = error == 0 ? listen_at(a, options, error) : nullptr;
  io::set(ec, error);
  if (s == nullptr) return {};
  if (!path.starts_with('@')) s->unlink_path = path;
  return access::make<listener>(s.release());
}

listener listen_tcp(std::string_view host_port, std::error_code& ec) { return listen_tcp(host_port, listen_options{}, ec); }

listener listen_tcp(std::string_view host_port, listen_options options) {
  std::error_code ec;
  listener l = listen_tcp(host_port, options, ec);
  if (ec) throw std::system_error(ec, "weft::net::listen_tcp: " + std::string(host_port));
  return l;
}

listener listen_unix(std::string_view path, std::error_code& ec) { return listen_unix(path, listen_options{}, ec); }

listener listen_unix(std::string_view path, listen_options options) {
  std::error_code ec;
  listener l = listen_unix(path, options, ec);
  if (ec) throw std::system_error(ec, "weft::net::listen_unix: " + std::string(path));
  return l;
}

}  // namespace weft::net
