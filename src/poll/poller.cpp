#include "poll/poller.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <limits>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fatal.h"
#include "os/clock.h"

namespace weft::poll {
namespace {

constinit int epoll_fd = -1;
constinit int interrupt_fd = -1;
constinit std::atomic<bool> interrupted{false};  // collapses many interrupts into one write

constexpr std::int64_t forever = std::numeric_limits<std::int64_t>::max();

// Nanoseconds where the kernel has them (Linux 5.11), else milliseconds, rounded up.
int epoll_sleep(epoll_event* events, int capacity, std::int64_t timeout_ns) noexcept {
  if (timeout_ns < 0) return ::epoll_wait(epoll_fd, events, capacity, -1);
  const timespec ts{.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000), .tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000)};
  const long n = ::syscall(SYS_epoll_pwait2, epoll_fd, events, capacity, &ts, nullptr, 0);
  if (n >= 0 || errno != ENOSYS) return static_cast<int>(n);
  constexpr std::int64_t longest_ms = std::numeric_limits<int>::max();
  return ::epoll_wait(epoll_fd, events, capacity, static_cast<int>(std::min(timeout_ns / 1'000'000 + 1, longest_ms)));
}

}  // namespace

void open_poller() noexcept {
  if (epoll_fd >= 0) return;
  epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  interrupt_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  if (epoll_fd < 0 || interrupt_fd < 0 || ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, interrupt_fd, &event) != 0) {
    base::fatal("cannot open the poller: error ", errno);
  }
}

void wait_until(std::int64_t deadline_ns) noexcept {
  std::int64_t timeout = -1;
  if (deadline_ns != forever) {
    timeout = deadline_ns - os::now_ns();
    if (timeout <= 0) return;
  }
  epoll_event events[8];
  if (epoll_sleep(events, 8, timeout) <= 0) return;
  // Read first: an interrupt that comes between the two is swallowed, but its cause is seen by the caller, who looks at the
  // timers after this. The other way round its write would be read here and its flag stay set for ever.
  std::uint64_t count;
  [[maybe_unused]] const ssize_t n = ::read(interrupt_fd, &count, sizeof count);
  interrupted.store(false, std::memory_order_seq_cst);
}

void interrupt() noexcept {
  if (interrupted.exchange(true, std::memory_order_seq_cst)) return;
  const std::uint64_t one = 1;
  const int saved = errno;
  [[maybe_unused]] const ssize_t n = ::write(interrupt_fd, &one, sizeof one);
  errno = saved;
}

}  // namespace weft::poll
