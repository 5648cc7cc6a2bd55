// Texts that name addresses. Functions that return int return an error number, 0 if there is none.
#pragma once

#include <cstdint>
#include <string_view>

#include <netinet/in.h>

#include <weft/net.h>

namespace weft::net {

// "host:port", "[v6 host]:port", ":port". False: it is none of these.
bool split(std::string_view host_port, std::string_view& host, std::string_view& port) noexcept;

// A number; nothing is port 0.
bool parse_port(std::string_view text, std::uint16_t& port) noexcept;

bool parse_host(std::string_view numeric_host, std::uint16_t port, address& out) noexcept;
int parse_numeric(std::string_view host_port, address& out) noexcept;
int make_path(std::string_view path, address& out) noexcept;

// An IPv4 address as an IPv6 socket needs it.
sockaddr_in6 mapped(const address& v4) noexcept;

// What resolve() does, until the deadline (CLOCK_MONOTONIC). An empty host is the wildcard, or, to dial, this machine.
enum class purpose { listen, dial, bind_datagrams };
std::vector<address> resolve(std::string_view host_port, purpose why, std::int64_t deadline_ns, std::error_code& ec);

}  // namespace weft::net
