// Dialing: one address, several in turn, and two families side by side.
//
// Where a name has IPv6 and IPv4 addresses, those of the family that the system prefers are tried first; the others are
// tried beside them when they have all failed, or after fallback_delay. The first connection wins, and the attempts of the
// other goroutine are closed.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>

#include <sys/socket.h>

#include <weft/chan.h>
#include <weft/go.h>
#include <weft/mutex.h>
#include <weft/net.h>
#include <weft/select.h>
#include <weft/time.h>

#include "io/calls.h"
#include "io/error.h"
#include "net/host_port.h"
#include "net/socket.h"
#include "os/clock.h"
#include "sched/scheduler.h"

namespace weft::net {
namespace {

struct attempt {
  conn connection;
  int error = 0;
};

// Attempts that run beside each other: who is over closes what the other is waiting for.
class race {
 public:
  // False: the race is over.
  bool enter(int lane, io::fd* fd) {
    const std::lock_guard guard(lock_);
    if (over_) return false;
    running_[lane] = fd;
    return true;
  }
  // False: the race was over meanwhile.
  bool leave(int lane) {
    const std::lock_guard guard(lock_);
    running_[lane] = nullptr;
    return !over_;
  }
  void end() {
    const std::lock_guard guard(lock_);
    over_ = true;
    for (io::fd* fd : running_) {
      if (fd != nullptr) fd->close();
    }
  }

 private:
  weft::mutex lock_;
  bool over_ = false;
  io::fd* running_[2] = {};  // alive while they are here
};

// What has become of a connect() that was under way. EINPROGRESS: nothing yet.
[[gnu::noinline]] int outcome_of_connect(int number) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error != 0) return error;
  sockaddr_storage peer;
  size = sizeof peer;
  return ::getpeername(number, reinterpret_cast<sockaddr*>(&peer), &size) == 0 ? 0 : errno == ENOTCONN ? EINPROGRESS : errno;
}

// A Unix listener whose queue is full cannot be waited for: try again from time to time.
int connect_to_full_listener(io::fd& fd, const sockaddr* to, socklen_t size, std::int64_t deadline) {
  for (std::int64_t pause = 500'000;; pause = std::min(pause * 2, std::int64_t{50'000'000})) {
    const long n = io::call_connect(fd.number(), to, size);
    if (n == 0) return 0;
    if (n != -EAGAIN && n != -EINTR) return static_cast<int>(-n);
    const std::int64_t now = os::now_ns();
    if (now >= deadline) return ETIMEDOUT;
    detail::sleep_for_ns(std::min(pause, deadline - now));
  }
}

int connect_to(io::fd& fd, const address& to, std::int64_t deadline) {
  const auto* native = static_cast<const sockaddr*>(to.native());
  const auto size = static_cast<socklen_t>(to.native_size());
  if (fd.family == AF_UNIX) return connect_to_full_listener(fd, native, size, deadline);
  const io::operation op(&fd, io::writing);
  if (op.error() != 0) return op.error();
  const long n = io::call_connect(fd.number(), native, size);
  if (n != -EINPROGRESS && n != -EINTR) return static_cast<int>(-n);
  for (;;) {
    if (const int error = fd.wait(io::writing, deadline)) return error;
    if (const int error = outcome_of_connect(fd.number()); error != EINPROGRESS) return error;
  }
}

// With nobody listening on a port of the range that the kernel gives out, a socket may be connected to itself.
bool is_self_connected(conn& c) {
  std::error_code gone;  // already; whoever uses it will see
  const address local = c.local_address(gone);
  return !gone && local == c.remote_address(gone);
}

attempt dial_once(const address& to, const dial_options& o, std::int64_t deadline, race* r, int lane) {
  int error = 0;
  socket_ptr s = open_socket(to.family(), SOCK_STREAM, error);
  if (s == nullptr) return {{}, error};
  if (s->tcp) {
    net::set_no_delay(s->number(), o.no_delay);
    net::set_keep_alive(s->number(), o.keep_alive);
  }
  if (r != nullptr && !r->enter(lane, s.get())) return {{}, ECANCELED};
  error = connect_to(*s, to, deadline);
  if (r != nullptr && !r->leave(lane)) error = ECANCELED;
  if (error != 0) return {{}, error};
  remember_peer(*s, to.native(), to.native_size());
  return {access::make<conn>(s.release()), 0};
}

attempt dial_address(const address& to, const dial_options& o, std::int64_t deadline, race* r, int lane) {
  for (int tries = 0;; ++tries) {
    attempt a = dial_once(to, o, deadline, r, lane);
    if (a.error != 0 || to.family() == AF_UNIX || !is_self_connected(a.connection)) return a;
    if (tries == 2) return {{}, ECONNREFUSED};
  }
}

// This one's share of the time that is left, so that an address that says nothing leaves some to the others.
std::int64_t share_of(std::int64_t deadline, std::size_t addresses_left) {
  if (deadline == detail::no_deadline) return deadline;
  const std::int64_t now = os::now_ns();
  const std::int64_t least = 2'000'000'000;
  return std::min(deadline, now + std::max(least, (deadline - now) / static_cast<std::int64_t>(addresses_left)));
}

attempt dial_in_turn(std::span<const address> list, const dial_options& o, std::int64_t deadline, race* r, int lane) {
  int first_error = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (os::now_ns() >= deadline) return {{}, ETIMEDOUT};
    attempt a = dial_address(list[i], o, share_of(deadline, list.size() - i), r, lane);
    if (a.error == 0 || a.error == ECANCELED) return a;
    if (first_error == 0) first_error = a.error;
  }
  return {{}, first_error != 0 ? first_error : EINVAL};
}

struct parallel {
  std::vector<address> lanes[2];
  dial_options options;
  std::int64_t deadline;
  race progress;
  chan<attempt> done{2};

  void run(int lane) { done.send(dial_in_turn(lanes[lane], options, deadline, &progress, lane)); }
};

attempt dial_in_parallel(const std::shared_ptr<parallel>& all) {
  const auto start = [&](int lane) { go([all, lane] { all->run(lane); }); };
  start(0);
  int running = 1;
  int first_error = 0;
  std::optional<attempt> got;
  select(on_recv(all->done, [&](std::optional<attempt> a) { got = std::move(a); }), on_timeout(all->options.fallback_delay));
  for (bool fallback_started = false;;) {
    if (got) {
      --running;
      if (got->error == 0) {
        all->progress.end();
        return std::move(*got);
      }
      if (first_error == 0) first_error = got->error;
    }
    if (!std::exchange(fallback_started, true)) {
      start(1);
      ++running;
    }
    if (running == 0) return {{}, first_error};
    got = all->done.recv();
  }
}

// To try two families side by side takes goroutines; and for those of a plain thread all that are frozen would go on.
bool would_thaw() noexcept { return !in_goroutine() && sched::is_world_frozen(); }

attempt dial_any(std::vector<address> list, const dial_options& o, std::int64_t deadline) {
  const int preferred = list.front().family();
  const auto others = std::stable_partition(list.begin(), list.end(), [&](const address& a) { return a.family() == preferred; });
  if (others == list.end() || o.fallback_delay.count() < 0 || would_thaw()) return dial_in_turn(list, o, deadline, nullptr, 0);
  auto all = std::make_shared<parallel>();
  all->lanes[0].assign(list.begin(), others);
  all->lanes[1].assign(others, list.end());
  all->options = o;
  all->deadline = deadline;
  return dial_in_parallel(all);
}

std::int64_t deadline_of(const dial_options& o) {
  return o.timeout.count() == 0 ? detail::no_deadline : detail::deadline_after(o.timeout);
}

}  // namespace

conn dial_tcp(std::string_view host_port, dial_options options, std::error_code& ec) {
  const std::int64_t deadline = deadline_of(options);
  std::vector<address> list = resolve(host_port, purpose::dial, deadline, ec);
  if (ec) return {};
  attempt a = list.empty() ? attempt{{}, EADDRNOTAVAIL} : dial_any(std::move(list), options, deadline);
  io::set(ec, a.error);
  return std::move(a.connection);
}

conn dial_unix(std::string_view path, dial_options options, std::error_code& ec) {
  address to;
  attempt a;
  a.error = make_path(path, to);
  if (a.error == 0) a = dial_address(to, options, deadline_of(options), nullptr, 0);
  io::set(ec, a.error);
  return std::move(a.connection);
}

conn dial_tcp(std::string_view host_port, std::error_code& ec) { return dial_tcp(host_port, dial_options{}, ec); }

conn dial_tcp(std::string_view host_port, dial_options options) {
  std::error_code ec;
  conn c = dial_tcp(host_port, options, ec);
  if (ec) throw std::system_error(ec, "weft::net::dial_tcp: " + std::string(host_port));
  return c;
}

conn dial_unix(std::string_view path, std::error_code& ec) { return dial_unix(path, dial_options{}, ec); }

conn dial_unix(std::string_view path, dial_options options) {
  std::error_code ec;
  conn c = dial_unix(path, options, ec);
  if (ec) throw std::system_error(ec, "weft::net::dial_unix: " + std::string(path));
  return c;
}

}  // namespace weft::net
