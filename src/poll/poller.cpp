#include "poll/poller.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/system_call.h"
#include "base/fatal.h"
#include "base/prefetch.h"
#include "os/clock.h"

namespace weft::poll {
namespace {

constinit int epoll_fd = -1;
constinit int interrupt_fd = -1;
constinit std::atomic<bool> interrupted{false};  // collapses many interrupts into one write

// [poll.watch] how often a descriptor was given to the kernel. It comes back from there with an event, in another thread; that what was
// written to it before is seen then is the kernel's doing, and is said in the language's terms, too.
constinit std::atomic<std::uint32_t> watched{0};

constexpr int batch = 256;  // events a call: 3 KiB of an M's stack

// Nanoseconds where the kernel has them (Linux 5.11) and lets us (some sandboxes refuse what they do not know), else
// milliseconds, rounded up.
int epoll_sleep(epoll_event* events, int capacity, std::int64_t timeout_ns) noexcept {
  static bool refused = false;  // used by one thread at a time
  if (!refused) {
    const timespec ts{.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000), .tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000)};
    const long n = ::syscall(SYS_epoll_pwait2, epoll_fd, events, capacity, &ts, nullptr, 0);
    refused = n < 0 && (errno == ENOSYS || errno == EPERM);
    if (!refused) return static_cast<int>(n);
  }
  constexpr std::int64_t longest_ms = std::numeric_limits<int>::max();
  return ::epoll_wait(epoll_fd, events, capacity, static_cast<int>(std::min(timeout_ns / 1'000'000 + 1, longest_ms)));
}

// How long the kernel takes to bring a sleeper back after its time: longer than nine in ten times that it took lately.
class wakeup_delay {
 public:
  std::int64_t estimate() const noexcept { return ns_.load(std::memory_order_relaxed); }
  // By who waits, which is one thread at a time.
  void measured(std::int64_t ns) noexcept {
    const std::int64_t old = estimate();
    ns_.store(ns > old ? std::min(old + step_up, longest) : std::max<std::int64_t>(old - step_down, 0), std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t step_up = 4'500, step_down = 500, longest = 80'000;
  std::atomic<std::int64_t> ns_{50'000};
};
constinit wakeup_delay delay;

int sleep_punctually(epoll_event* events, int capacity, std::int64_t deadline_ns) noexcept {
  const std::int64_t timeout = deadline_ns - os::now_ns();
  if (timeout <= 0) return 0;
  const os::punctual scope;
  const int n = epoll_sleep(events, capacity, timeout);
  if (n == 0) delay.measured(os::now_ns() - deadline_ns);
  return n;
}

// Without waiting. A negative error number if it fails.
int events_now(epoll_event* events, int capacity) noexcept {
#if defined(SYS_epoll_wait)
  return static_cast<int>(arch::system_call([&] { return ::epoll_wait(epoll_fd, events, capacity, 0); }, SYS_epoll_wait, epoll_fd,
                                            arch::as_argument(events), capacity, 0));
#else
  const int n = ::epoll_wait(epoll_fd, events, capacity, 0);
  return n >= 0 ? n : -errno;
#endif
}

// What an event carries: the descriptor in the lower 48 bits, 16 bits of its tag above. 0 is the interrupt.
constexpr int pointer_bits = 48;

std::uint64_t pack(const descriptor& d) noexcept {
  return reinterpret_cast<std::uint64_t>(&d) | std::uint64_t{d.tag.load(std::memory_order_relaxed)} << pointer_bits;
}

descriptor* address(std::uint64_t data) noexcept {
  return reinterpret_cast<descriptor*>(data & ((std::uint64_t{1} << pointer_bits) - 1));
}

descriptor* unpack(std::uint64_t data) noexcept {
  descriptor* d = address(data);
  return pack(*d) == data ? d : nullptr;  // else it was closed meanwhile, and serves another
}

constexpr std::uint32_t exceptional_events = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
constexpr std::uint32_t reading_events = EPOLLIN | exceptional_events;
constexpr std::uint32_t writing_events = EPOLLOUT | EPOLLHUP | EPOLLERR;

// True: it was an interrupt.
bool sort(const epoll_event& event, events& found) noexcept {
  if (event.data.u64 == 0) return true;
  ++found.seen;
  descriptor* d = unpack(event.data.u64);
  if (d == nullptr) return false;
  const bool exceptional = (event.events & exceptional_events) != 0;
  if (exceptional) d->exceptional.store(true, std::memory_order_relaxed);
  if ((event.events & reading_events) != 0) found.ready.add(d->slots[reading].notify());
  // An event says all that holds, and mostly it is news for the reader only.
  if ((event.events & writing_events) == 0 || (!exceptional && d->slots[writing].is_ready())) return false;
  found.ready.add(d->slots[writing].notify());
  return false;
}

// Descriptors, and those who wait at them, are cold: their cache misses overlap this way.
void warm_up(const epoll_event* list, int n) noexcept {
  for (int i = 0; i < n; ++i) base::prefetch_to_write(address(list[i].data.u64));
  for (int i = 0; i < n; ++i) {
    const descriptor* d = address(list[i].data.u64);
    const waiter* w = d != nullptr ? d->slots[reading].likely_waiter() : nullptr;
    if (w == nullptr) continue;
    // It lies between the frames in which its goroutine will go on.
    const auto* at = reinterpret_cast<const std::byte*>(w);
    for (int line = -1; line <= 1; ++line) base::prefetch_to_write(at + line * 64);
  }
}

// Whoever closed our descriptor, a program that closes all it has to become a daemon or one that closes a number twice, would
// otherwise see all its sockets hang, and a core busy with asking.
[[noreturn, gnu::cold]] void poller_is_broken(int error) noexcept {
  base::fatal("the poller fails: error ", error, " (has the program closed a descriptor that is not its own?)");
}

bool sort_all(const epoll_event* list, int n, events& found) noexcept {
  bool interrupt = false;
  if (n > 0) watched.load(std::memory_order_acquire);  // [poll.watch]
  if (n > 1) warm_up(list, n);
  for (int i = 0; i < n; ++i) interrupt |= sort(list[i], found);
  return interrupt;
}

}  // namespace

int open_poller() noexcept {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  interrupt_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_fd >= 0 && interrupt_fd >= 0 && ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, interrupt_fd, &event) == 0) return 0;
  const int error = errno;
  for (int* fd : {&epoll_fd, &interrupt_fd}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
  return error;
}

int watch(int fd, descriptor& d) noexcept {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET, .data = {.u64 = pack(d)}};
  watched.fetch_add(1, std::memory_order_release);  // [poll.watch]
  return ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

void unwatch(int fd) noexcept {
  epoll_event event{};
  ::epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, &event);
}

void poll(events& found) noexcept {
  epoll_event list[batch];
  // An interrupt is not ours: it is for the thread that waits, and stays there for it.
  const int n = events_now(list, batch);
  if (n < 0 && n != -EINTR) poller_is_broken(-n);
  sort_all(list, n, found);
}

void wait_until(std::int64_t deadline_ns, events& found) noexcept {
  epoll_event list[batch];
  const int n = deadline_ns == no_deadline ? ::epoll_wait(epoll_fd, list, batch, -1) : sleep_punctually(list, batch, deadline_ns);
  if (n < 0 && errno != EINTR) poller_is_broken(errno);
  if (!sort_all(list, n, found)) return;
  // Read first: an interrupt that comes between the two is swallowed, but its cause is seen by the caller, who looks at the
  // timers after this. The other way round its write would be read here and its flag stay set for ever.
  std::uint64_t count;
  [[maybe_unused]] const ssize_t bytes = ::read(interrupt_fd, &count, sizeof count);
  interrupted.store(false, std::memory_order_seq_cst);
}

bool any_event() noexcept {
  if (interrupted.load(std::memory_order_relaxed)) return false;  // it would be that, as long as nobody waits to take it
  pollfd p{epoll_fd, POLLIN, 0};
  return ::poll(&p, 1, 0) > 0;
}

std::int64_t usual_delay() noexcept { return delay.estimate(); }

void interrupt() noexcept {
  if (interrupted.exchange(true, std::memory_order_seq_cst)) return;
  const std::uint64_t one = 1;
  const int saved = errno;  // whoever starts a timer does not expect it to change
  // Whoever sleeps there has a hold on its descriptor, also on one that was closed, and would never hear of this.
  if (::write(interrupt_fd, &one, sizeof one) < 0 && errno != EAGAIN) poller_is_broken(errno);
  errno = saved;
}

}  // namespace weft::poll
