// TCP, UDP and Unix sockets. A goroutine that waits for one holds no thread; a plain thread blocks.
//
// Every call has a form that throws std::system_error and one that takes a std::error_code&. Reads and writes take
// whatever is a contiguous range of bytes or chars (<weft/buffer.h>).
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/buffer.h>
#include <weft/detail/io_object.h>

namespace weft::net {

// An IP address and a port, or the path of a Unix socket. An IPv4 address that came through an IPv6 socket is an IPv4
// address.
class address {
 public:
  address() noexcept = default;

  // "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80"; no names. Throws std::system_error (invalid_argument).
  static address parse(std::string_view host_port);
  // The path of a Unix socket; "@name" is one of the abstract namespace.
  static address of_path(std::string_view path);
  // What the system calls use.
  static address from_native(const void* sockaddr, std::size_t size) noexcept;
  const void* native() const noexcept { return bytes_.data(); }
  std::size_t native_size() const noexcept { return size_; }
  int family() const noexcept;

  // host:port, as dial_tcp takes it; a path for a Unix socket; empty for none.
  std::string to_string() const;
  std::string host() const;
  std::uint16_t port() const noexcept;

  friend bool operator==(const address& a, const address& b) noexcept { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const address& a, const address& b) noexcept;

  std::size_t hash() const noexcept;
  template <class Char, class Traits>
  friend std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, const address& a) {
    return out << a.to_string().c_str();
  }

 private:
  alignas(8) std::array<std::byte, 112> bytes_{};
  std::uint32_t size_ = 0;
};

// All addresses of "host:port". Names are looked up in a blocking call, which keeps no P.
std::vector<address> resolve(std::string_view host_port);
std::vector<address> resolve(std::string_view host_port, std::error_code& ec);

// Errors of looking up names (EAI_...).
const std::error_category& resolve_category() noexcept;

struct listen_options {
  int backlog = 4096;
  bool reuse_port = false;                 // several listeners on one port share its connections
  bool v6_only = false;                    // an IPv6 listener takes no IPv4 connections
  bool no_delay = true;                    // of the connections that come from it
  std::chrono::nanoseconds keep_alive = std::chrono::seconds(15);  // 0: off
};

struct dial_options {
  std::chrono::nanoseconds timeout{0};     // for all of it: names, every address. 0: none but the system's
  bool no_delay = true;
  std::chrono::nanoseconds keep_alive = std::chrono::seconds(15);
  // How long the addresses of the preferred family (IPv6 or IPv4) are tried alone before the others are tried beside.
  std::chrono::nanoseconds fallback_delay = std::chrono::milliseconds(300);
};

// A full-duplex stream of bytes.
class conn : public detail::io_object {
 public:
  conn() noexcept = default;

  // Up to a whole buffer; at least one byte, unless it is the end of the stream (0), or the buffer is empty.
  std::size_t read(mutable_buffer to);
  std::size_t read(mutable_buffer to, std::error_code& ec);
  // Until the buffer is full or the stream has ended. After an error: how much was read.
  std::size_t read_full(mutable_buffer to);
  std::size_t read_full(mutable_buffer to, std::error_code& ec);
  // All of it. Writes at the same time come one after the other. After an error: how much was written.
  std::size_t write(const_buffer from);
  std::size_t write(const_buffer from, std::error_code& ec);
  // All of all of them, as one write.
  std::size_t writev(std::span<const const_buffer> parts);
  std::size_t writev(std::span<const const_buffer> parts, std::error_code& ec);
  std::size_t writev(std::initializer_list<const_buffer> parts) { return writev(std::span(parts.begin(), parts.size())); }
  std::size_t writev(std::initializer_list<const_buffer> parts, std::error_code& ec) {
    return writev(std::span(parts.begin(), parts.size()), ec);
  }

  // The other side reads the end of the stream; reading goes on here.
  void shutdown_write();
  void shutdown_write(std::error_code& ec);

  void set_no_delay(bool on);
  void set_no_delay(bool on, std::error_code& ec);
  void set_keep_alive(std::chrono::nanoseconds idle);  // 0: off
  void set_keep_alive(std::chrono::nanoseconds idle, std::error_code& ec);

  address local_address() const;
  address local_address(std::error_code& ec) const;
  // Of a TCP connection it is known for ever: also after the other side has reset it, and after close().
  address remote_address() const;
  address remote_address(std::error_code& ec) const;

 private:
  friend class listener;
  friend struct access;
  using io_object::io_object;
};

class listener : public detail::io_object {
 public:
  listener() noexcept = default;

  // The next connection. Those that were given up before they could be accepted are passed over; when the process, or
  // the system, is out of descriptors or memory, it waits for better times.
  conn accept();
  conn accept(std::error_code& ec);

  address local_address() const;
  address local_address(std::error_code& ec) const;

 private:
  friend struct access;
  using io_object::io_object;
};

// Datagrams: UDP, or Unix.
class udp_socket : public detail::io_object {
 public:
  udp_socket() noexcept = default;

  // One datagram, cut to the buffer's size, and where it came from.
  std::pair<std::size_t, address> recv_from(mutable_buffer to);
  std::pair<std::size_t, address> recv_from(mutable_buffer to, std::error_code& ec);
  std::size_t send_to(const_buffer from, const address& to);
  std::size_t send_to(const_buffer from, const address& to, std::error_code& ec);

  // From now on datagrams go to, and come from, this address only; for read and write.
  void connect(const address& peer);
  void connect(const address& peer, std::error_code& ec);
  std::size_t read(mutable_buffer to);
  std::size_t read(mutable_buffer to, std::error_code& ec);
  std::size_t write(const_buffer from);
  std::size_t write(const_buffer from, std::error_code& ec);

  address local_address() const;
  address local_address(std::error_code& ec) const;
  address remote_address() const;
  address remote_address(std::error_code& ec) const;

 private:
  friend struct access;
  using io_object::io_object;
};

// "127.0.0.1:0", "[::1]:80", "localhost:http", ":8080". Without a host: all of this machine's addresses, IPv6 and IPv4.
listener listen_tcp(std::string_view host_port, listen_options options = {});
listener listen_tcp(std::string_view host_port, listen_options options, std::error_code& ec);
listener listen_tcp(std::string_view host_port, std::error_code& ec);

// Closing the listener removes the path. "@name": the abstract namespace.
listener listen_unix(std::string_view path, listen_options options = {});
listener listen_unix(std::string_view path, listen_options options, std::error_code& ec);
listener listen_unix(std::string_view path, std::error_code& ec);

// Tries the addresses that a name has in turn, and if it has both IPv6 and IPv4 ones, the two kinds beside each other
// once the first has had some time. Without a host: this machine.
conn dial_tcp(std::string_view host_port, dial_options options = {});
conn dial_tcp(std::string_view host_port, dial_options options, std::error_code& ec);
conn dial_tcp(std::string_view host_port, std::error_code& ec);

conn dial_unix(std::string_view path, dial_options options = {});
conn dial_unix(std::string_view path, dial_options options, std::error_code& ec);
conn dial_unix(std::string_view path, std::error_code& ec);

udp_socket bind_udp(std::string_view host_port);
udp_socket bind_udp(std::string_view host_port, std::error_code& ec);

// A Unix datagram socket. Closing it removes the path.
udp_socket bind_unixgram(std::string_view path);
udp_socket bind_unixgram(std::string_view path, std::error_code& ec);

}  // namespace weft::net

template <>
struct std::hash<weft::net::address> {
  std::size_t operator()(const weft::net::address& a) const noexcept { return a.hash(); }
};
