#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include <netdb.h>

#include <weft/blocking.h>
#include <weft/future.h>
#include <weft/net.h>

#include "io/error.h"
#include "net/host_port.h"

namespace weft::net {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weft.resolve"; }
  std::string message(int code) const override { return ::gai_strerror(code); }
  std::error_condition default_error_condition(int code) const noexcept override {
    switch (code) {
      case EAI_AGAIN:
        return std::errc::resource_unavailable_try_again;
      case EAI_MEMORY:
        return std::errc::not_enough_memory;
      case EAI_FAMILY:
        return std::errc::address_family_not_supported;
      default:
        return {code, *this};
    }
  }
};

struct answer {
  std::vector<address> addresses;
  std::error_code error;
};

// Blocks the thread.
answer look_up(const std::string& host, const std::string& port, purpose why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = why == purpose::bind_datagrams ? SOCK_DGRAM : SOCK_STREAM;  // also decides whose services are meant
  addrinfo* list = nullptr;
  answer result;
  const int failure = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.empty() ? "0" : port.c_str(), &hints, &list);
  if (failure == EAI_SYSTEM) {
    io::set(result.error, errno);
  } else if (failure != 0) {
    result.error.assign(failure, resolve_category());
  }
  if (failure != 0) return result;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    result.addresses.push_back(address::from_native(a->ai_addr, a->ai_addrlen));
  }
  ::freeaddrinfo(list);
  return result;
}

// getaddrinfo() cannot be interrupted: past the deadline it is left to itself.
answer look_up_until(std::string host, std::string port, purpose why, std::int64_t deadline_ns) {
  if (deadline_ns == detail::no_deadline) {
    return blocking([&] { return look_up(host, port, why); });
  }
  auto pending = async([host = std::move(host), port = std::move(port), why] {
    return blocking([&] { return look_up(host, port, why); });
  });
  const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(deadline_ns)};
  if (pending.wait_until(deadline) == std::future_status::ready) return pending.get();
  return {{}, std::make_error_code(std::errc::timed_out)};
}

// Services have names with a letter in them. getaddrinfo() would take other things for numbers, " 80" for one, and cut
// those that are too large.
bool may_be_service(std::string_view port) noexcept {
  return std::any_of(port.begin(), port.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

// "127.1", "0x7f.1", "2130706433": getaddrinfo() takes old spellings of numbers for addresses, which nobody means and filters do not
// expect. No name ends in such a number.
bool ends_like_number(std::string_view host) noexcept {
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  std::string_view last = host.substr(host.rfind('.') + 1);
  const bool is_hex = last.starts_with("0x") || last.starts_with("0X");
  if (is_hex) last.remove_prefix(2);
  const std::string_view digits = is_hex ? "0123456789abcdefABCDEF" : "0123456789";
  return (is_hex || !last.empty()) && last.find_first_not_of(digits) == last.npos;
}

address of(std::string_view host, std::uint16_t port) {
  address a;
  parse_host(host, port, a);
  return a;
}

}  // namespace

const std::error_category& resolve_category() noexcept {
  static const category instance;
  return instance;
}

std::vector<address> resolve(std::string_view host_port, purpose why, std::int64_t deadline_ns, std::error_code& ec) {
  ec.clear();
  std::string_view host;
  std::string_view port_text;
  std::uint16_t port = 0;
  const bool is_split = split(host_port, host, port_text);
  const bool port_is_number = parse_port(port_text, port);
  if (!is_split || (!port_is_number && !may_be_service(port_text))) {
    io::set(ec, EINVAL);
    return {};
  }
  const auto without_host = [why](std::uint16_t at) -> std::vector<address> {
    if (why == purpose::dial) return {of("127.0.0.1", at), of("::1", at)};
    return {of("::", at), of("0.0.0.0", at)};
  };
  if (port_is_number && host.empty()) return without_host(port);
  address numeric;
  if (port_is_number && parse_host(host, port, numeric)) return {numeric};
  if (ends_like_number(host) && !parse_host(host, 0, numeric)) {
    ec.assign(EAI_NONAME, resolve_category());
    return {};
  }
  answer found = look_up_until(std::string(host), std::string(port_text), why, deadline_ns);
  ec = found.error;
  if (!ec && host.empty() && !found.addresses.empty()) return without_host(found.addresses.front().port());
  return std::move(found.addresses);
}

std::vector<address> resolve(std::string_view host_port, std::error_code& ec) {
  return resolve(host_port, purpose::dial, detail::no_deadline, ec);
}

std::vector<address> resolve(std::string_view host_port) {
  std::error_code ec;
  std::vector<address> found = resolve(host_port, ec);
  if (ec) throw std::system_error(ec, "weft::net::resolve: " + std::string(host_port));
  return found;
}

}  // namespace weft::net
