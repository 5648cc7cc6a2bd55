#include <climits>
#include <vector>

#include <sys/uio.h>

#include <weft/net.h>

#include "io/calls.h"
#include "io/error.h"
#include "net/socket.h"

namespace weft::net {
namespace {

std::size_t send_all(io::fd* fd, const_buffer from, std::error_code& ec) {
  io::operation op(fd, io::writing);
  int error = op.error();
  const auto* bytes = static_cast<const char*>(from.data());
  std::size_t done = 0;
  while (error == 0 && done < from.size()) {
    const long n = op.run([&](int number) { return io::call_send(number, bytes + done, from.size() - done); });
    if (n < 0) {
      error = static_cast<int>(-n);
    } else if ((done += static_cast<std::size_t>(n)) < from.size()) {
      error = op.check();  // a receiver that keeps up never has us wait
    }
  }
  io::set(ec, error);
  return done;
}

// What is left of the parts after `n` bytes were sent.
void drop_sent(std::span<iovec>& parts, std::size_t n) noexcept {
  while (!parts.empty() && n >= parts.front().iov_len) {
    n -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (parts.empty()) return;
  parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + n;
  parts.front().iov_len -= n;
}

std::size_t send_parts(io::fd* fd, std::span<iovec> parts, std::error_code& ec) {
  io::operation op(fd, io::writing);
  int error = op.error();
  std::size_t done = 0;
  for (drop_sent(parts, 0); error == 0 && !parts.empty();) {
    const std::size_t count = std::min<std::size_t>(parts.size(), IOV_MAX);
    const long n = op.run([&](int number) { return io::call_sendmsg(number, parts.data(), count); });
    if (n < 0) {
      error = static_cast<int>(-n);
    } else {
      done += static_cast<std::size_t>(n);
      drop_sent(parts, static_cast<std::size_t>(n));
      if (!parts.empty()) error = op.check();
    }
  }
  io::set(ec, error);
  return done;
}

}  // namespace

std::size_t conn::read(mutable_buffer to, std::error_code& ec) { return receive(fd_, to, ec); }

std::size_t conn::read(mutable_buffer to) {
  std::error_code ec;
  const std::size_t n = receive(fd_, to, ec);
  io::throw_if(ec, "weft::net::conn::read");
  return n;
}

std::size_t conn::read_full(mutable_buffer to, std::error_code& ec) {
  io::fd* const fd = fd_;         // what owns it may be gone before the end
  const io::brief_use use(fd);
  std::size_t done = 0;
  ec.clear();
  while (done < to.size()) {
    const std::size_t n = receive(fd, {static_cast<char*>(to.data()) + done, to.size() - done}, ec);
    if (n == 0) break;
    done += n;
  }
  return done;
}

std::size_t conn::read_full(mutable_buffer to) {
  std::error_code ec;
  const std::size_t n = read_full(to, ec);
  io::throw_if(ec, "weft::net::conn::read_full");
  return n;
}

std::size_t conn::write(const_buffer from, std::error_code& ec) { return send_all(fd_, from, ec); }

std::size_t conn::write(const_buffer from) {
  std::error_code ec;
  const std::size_t n = send_all(fd_, from, ec);
  io::throw_if(ec, "weft::net::conn::write");
  return n;
}

std::size_t conn::writev(std::span<const const_buffer> parts, std::error_code& ec) {
  std::vector<iovec> list;
  list.reserve(parts.size());
  for (const const_buffer& b : parts) list.push_back({const_cast<void*>(b.data()), b.size()});
  return send_parts(fd_, list, ec);
}

std::size_t conn::writev(std::span<const const_buffer> parts) {
  std::error_code ec;
  const std::size_t n = writev(parts, ec);
  io::throw_if(ec, "weft::net::conn::writev");
  return n;
}

void conn::shutdown_write(std::error_code& ec) {
  const io::brief_use use(fd_);
  int error = use.error();
  if (error == 0) error = static_cast<int>(-io::call_shutdown_write(use.file().number()));
  if (error == 0) use.file().look_again(io::writing);  // of a Unix socket that is no event
  io::set(ec, error);
}

void conn::shutdown_write() {
  std::error_code ec;
  shutdown_write(ec);
  io::throw_if(ec, "weft::net::conn::shutdown_write");
}

void conn::set_no_delay(bool on, std::error_code& ec) {
  const io::brief_use use(fd_);
  io::set(ec, use.error() != 0 ? use.error() : net::set_no_delay(use.file().number(), on));
}

void conn::set_no_delay(bool on) {
  std::error_code ec;
  set_no_delay(on, ec);
  io::throw_if(ec, "weft::net::conn::set_no_delay");
}

void conn::set_keep_alive(std::chrono::nanoseconds idle, std::error_code& ec) {
  const io::brief_use use(fd_);
  io::set(ec, use.error() != 0 ? use.error() : net::set_keep_alive(use.file().number(), idle));
}

void conn::set_keep_alive(std::chrono::nanoseconds idle) {
  std::error_code ec;
  set_keep_alive(idle, ec);
  io::throw_if(ec, "weft::net::conn::set_keep_alive");
}

address conn::local_address(std::error_code& ec) const { return address_of(fd_, side::local, ec); }
address conn::local_address() const { return address_of(fd_, side::local, "weft::net::conn::local_address"); }
address conn::remote_address(std::error_code& ec) const { return address_of(fd_, side::remote, ec); }
address conn::remote_address() const { return address_of(fd_, side::remote, "weft::net::conn::remote_address"); }

}  // namespace weft::net
