#include "os/quick_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <unistd.h>

#include <string_view>

namespace weft::os {

constinit std::atomic<bool> quick_clock::allowed{false};
constinit std::atomic<std::uint64_t> quick_clock::window_ticks{0};
constinit std::atomic<std::uint64_t> quick_clock::ns_per_tick{0};

#if defined(__x86_64__)
namespace {

constexpr std::int64_t window_ns = 8'000;

// The counter runs at one speed, whatever the core does.
bool has_steady_counter() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

// And is the same on all cores: else the kernel would count by something else.
bool is_clock_of_kernel() noexcept {
  const int fd = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[16];
  const ssize_t n = ::read(fd, text, sizeof text);
  ::close(fd);
  return n > 0 && std::string_view(text, static_cast<std::size_t>(n)) == "tsc\n";
}

constinit counter_speed speed;

}  // namespace

void quick_clock::look_at_kernel() noexcept {
  allowed.store(has_steady_counter() && is_clock_of_kernel(), std::memory_order_relaxed);
}

std::int64_t quick_clock::look() noexcept {
  const std::uint64_t before = __rdtsc();  // first: what passes until the other is read counts twice, not never
  const std::int64_t now = now_ns();
  const std::uint64_t took = __rdtsc() - before;
  const std::uint64_t window = window_ticks.load(std::memory_order_relaxed);
  was_ = now;
  looked_at_ = took <= window / 8 ? before : 0;  // if something came between the two, it counts this once only
  if (window == 0) {
    if (const double each = speed.learn({before, now, took}); each != 0) {
      ns_per_tick.store(static_cast<std::uint64_t>(each * 1.125 * 4294967296.0), std::memory_order_relaxed);
      // [quick_clock.window] who sees a window sees how long a tick is
      window_ticks.store(static_cast<std::uint64_t>(static_cast<double>(window_ns) / each), std::memory_order_release);
    }
  }
  return now;
}
#else
void quick_clock::look_at_kernel() noexcept {}
#endif

// ---- how fast the counter is ---------------------------------------------------------------------------------------

namespace {

// A reading is exact if it took no longer: some microseconds, at least five hundred times less than what is measured.
constexpr std::uint64_t longest_reading = 4'000;
constexpr std::int64_t shortest_span = 1'000'000;
// Meanwhile the machine may have slept, which one of the clocks does not count, or have been moved.
constexpr std::int64_t longest_span = 1'000'000'000;
// No processor counts slower or faster.
constexpr double shortest_tick = 0.1, longest_tick = 10;
constexpr double agreement = 0.01;

}  // namespace

double counter_speed::learn(const counter_reading& r) noexcept {
  if (busy_.exchange(true, std::memory_order_acquire)) return 0;  // [counter_speed.busy]
  const double result = r.took <= longest_reading ? compare(r) : 0;
  busy_.store(false, std::memory_order_release);  // [counter_speed.busy]
  return result;
}

// Of two spans, one after the other, that say the same. Else it begins anew.
double counter_speed::compare(const counter_reading& r) noexcept {
  const std::int64_t span = r.ns - last_.ns;
  if (last_.ns != 0 && span >= 0 && span < shortest_span) return 0;
  const double each = static_cast<double>(span) / static_cast<double>(r.ticks - last_.ticks);
  const bool sound = last_.ns != 0 && span > 0 && span <= longest_span && r.ticks > last_.ticks && each >= shortest_tick && each <= longest_tick;
  const double before = before_;
  before_ = sound ? each : 0;
  last_ = r;
  return sound && before != 0 && each > before * (1 - agreement) && each < before * (1 + agreement) ? each : 0;
}

}  // namespace weft::os
