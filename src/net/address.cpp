#include <weft/net.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/host_port.h"

namespace weft::net {
namespace {

template <class T>
T as(const void* bytes) noexcept {
  T t;
  std::memcpy(&t, bytes, sizeof t);
  return t;
}

constexpr std::size_t path_offset = offsetof(sockaddr_un, sun_path);

// An IPv4 address in the clothes of an IPv6 one.
bool unmap(const sockaddr_in6& from, sockaddr_in& to) noexcept {
  if (!IN6_IS_ADDR_V4MAPPED(&from.sin6_addr)) return false;
  to = {};
  to.sin_family = AF_INET;
  to.sin_port = from.sin6_port;
  std::memcpy(&to.sin_addr, from.sin6_addr.s6_addr + 12, 4);
  return true;
}

std::size_t longest(sa_family_t family) noexcept {
  switch (family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    default:
      return sizeof(sockaddr_un);
  }
}

std::string_view path_of(const void* bytes, std::size_t size) noexcept {
  if (size <= path_offset) return {};
  std::string_view path(static_cast<const char*>(bytes) + path_offset, size - path_offset);
  if (path.front() != '\0') path = path.substr(0, path.find('\0'));
  return path;
}

std::string with_scope(std::string host, std::uint32_t scope) {
  if (scope == 0) return host;
  char name[IF_NAMESIZE];
  return host + '%' + (::if_indextoname(scope, name) != nullptr ? std::string(name) : std::to_string(scope));
}

}  // namespace

address address::from_native(const void* sockaddr, std::size_t size) noexcept {
  address a;
  if (size < sizeof(sa_family_t)) return a;
  size = std::min(size, longest(as<sa_family_t>(sockaddr)));  // the whole of a sockaddr_storage may be given
  if (size > a.bytes_.size()) return a;
  sockaddr_in v4;
  if (as<sa_family_t>(sockaddr) == AF_INET6 && size >= sizeof(sockaddr_in6) && unmap(as<sockaddr_in6>(sockaddr), v4)) {
    sockaddr = &v4;
    size = sizeof v4;
  }
  std::memcpy(a.bytes_.data(), sockaddr, size);
  a.size_ = static_cast<std::uint32_t>(size);
  return a;
}

address address::parse(std::string_view host_port) {
  address a;
  const int error = parse_numeric(host_port, a);
  if (error != 0) {
    throw std::system_error(error, std::system_category(), "weft::net::address::parse: " + std::string(host_port));
  }
  return a;
}

address address::of_path(std::string_view path) {
  address a;
  if (const int error = make_path(path, a)) {
    throw std::system_error(error, std::system_category(), "weft::net: the path of a Unix socket");
  }
  return a;
}

int address::family() const noexcept { return size_ == 0 ? AF_UNSPEC : as<sa_family_t>(bytes_.data()); }

std::uint16_t address::port() const noexcept {
  if (family() != AF_INET && family() != AF_INET6) return 0;
  return ntohs(as<sockaddr_in>(bytes_.data()).sin_port);  // at the same place in both
}

std::string address::host() const {
  char text[INET6_ADDRSTRLEN];
  if (family() == AF_INET) {
    const auto in = as<sockaddr_in>(bytes_.data());
    return ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
  }
  if (family() == AF_INET6) {
    const auto in = as<sockaddr_in6>(bytes_.data());
    return with_scope(::inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text), in.sin6_scope_id);
  }
  std::string path(path_of(bytes_.data(), size_));
  if (!path.empty() && path.front() == '\0') path.front() = '@';
  return path;
}

std::string address::to_string() const {
  switch (family()) {
    case AF_INET:
      return host() + ':' + std::to_string(port());
    case AF_INET6:
      return '[' + host() + "]:" + std::to_string(port());
    default:
      return host();
  }
}

std::strong_ordering operator<=>(const address& a, const address& b) noexcept {
  if (const auto order = a.family() <=> b.family(); order != 0) return order;
  if (a.family() == AF_UNIX) {
    const int order = path_of(a.native(), a.native_size()).compare(path_of(b.native(), b.native_size()));
    return order <=> 0;
  }
  if (a.family() == AF_INET6) {
    const auto x = as<sockaddr_in6>(a.native());
    const auto y = as<sockaddr_in6>(b.native());
    if (const int order = std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr); order != 0) return order <=> 0;
    if (const auto order = x.sin6_scope_id <=> y.sin6_scope_id; order != 0) return order;
  } else if (a.family() == AF_INET) {
    const auto x = as<sockaddr_in>(a.native());
    const auto y = as<sockaddr_in>(b.native());
    if (const auto order = ntohl(x.sin_addr.s_addr) <=> ntohl(y.sin_addr.s_addr); order != 0) return order;
  }
  return a.port() <=> b.port();
}

// Of what is compared.
std::size_t address::hash() const noexcept {
  const auto text = [](const void* at, std::size_t size) {
    return std::hash<std::string_view>()({static_cast<const char*>(at), size});
  };
  std::size_t h = 0;
  if (family() == AF_INET) {
    const auto in = as<sockaddr_in>(bytes_.data());
    h = text(&in.sin_addr, sizeof in.sin_addr);
  } else if (family() == AF_INET6) {
    const auto in = as<sockaddr_in6>(bytes_.data());
    h = text(&in.sin6_addr, sizeof in.sin6_addr) + in.sin6_scope_id;
  } else {
    h = std::hash<std::string_view>()(path_of(bytes_.data(), size_));
  }
  return h ^ (static_cast<std::size_t>(port()) * 0x9e37'79b9'7f4a'7c15);
}

bool split(std::string_view host_port, std::string_view& host, std::string_view& port) noexcept {
  if (host_port.find('\0') != host_port.npos) return false;  // the system would read up to there
  if (!host_port.empty() && host_port.front() == '[') {
    const std::size_t end = host_port.find("]:");
    if (end == std::string_view::npos || end == 1) return false;
    host = host_port.substr(1, end - 1);
    port = host_port.substr(end + 2);
    return port.find(':') == std::string_view::npos;
  }
  const std::size_t colon = host_port.find(':');
  if (colon == std::string_view::npos || host_port.find(':', colon + 1) != std::string_view::npos) return false;
  host = host_port.substr(0, colon);
  port = host_port.substr(colon + 1);
  return true;
}

bool parse_port(std::string_view text, std::uint16_t& port) noexcept {
  if (text.empty()) {
    port = 0;
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_host(std::string_view host, std::uint16_t port, address& out) noexcept {
  char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 2] = {};
  if (host.size() >= sizeof text) return false;
  host.copy(text, host.size());
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    out = address::from_native(&v4, sizeof v4);
    return true;
  }
  sockaddr_in6 v6{};
  if (char* percent = std::strchr(text, '%')) {
    *percent = '\0';
    v6.sin6_scope_id = ::if_nametoindex(percent + 1);
    if (v6.sin6_scope_id == 0) {
      const std::string_view number(percent + 1);
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), v6.sin6_scope_id);
      if (error != std::errc() || end != number.data() + number.size()) return false;
    }
  }
  if (::inet_pton(AF_INET6, text, &v6.sin6_addr) != 1) return false;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  out = address::from_native(&v6, sizeof v6);
  return true;
}

int parse_numeric(std::string_view host_port, address& out) noexcept {
  std::string_view host;
  std::string_view port_text;
  std::uint16_t port = 0;
  if (!split(host_port, host, port_text) || !parse_port(port_text, port) || !parse_host(host, port, out)) return EINVAL;
  return 0;
}

int make_path(std::string_view path, address& out) noexcept {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  const bool abstract = !path.empty() && path.front() == '@';
  // A path ends with a zero; an abstract name is as long as the address says.
  if (path.size() + (abstract ? 0 : 1) > sizeof un.sun_path) return ENAMETOOLONG;
  if (!abstract && path.find('\0') != path.npos) return EINVAL;
  path.copy(un.sun_path, path.size());
  if (abstract) un.sun_path[0] = '\0';
  out = address::from_native(&un, path_offset + path.size() + (abstract || path.empty() ? 0 : 1));
  return 0;
}

sockaddr_in6 mapped(const address& a) noexcept {
  const auto v4 = as<sockaddr_in>(a.native());
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(v6.sin6_addr.s6_addr + 12, &v4.sin_addr, 4);
  return v6;
}

}  // namespace weft::net
