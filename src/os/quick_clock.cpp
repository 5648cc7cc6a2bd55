#include "os/quick_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weft::os {

constinit std::atomic<std::uint64_t> quick_clock::window_ticks{0};
constinit std::atomic<std::uint64_t> quick_clock::ns_per_tick{0};

#if defined(__x86_64__)
namespace {

constexpr std::int64_t window_ns = 8'000;

// How fast the counter is, is found out by whoever looks at the real clock: from two readings of both clocks that were made
// within longest_reading, and are shortest_span apart, a five-hundredth of which the former is. Too far apart, and the machine
// may have been moved to another meanwhile.
constexpr std::int64_t longest_reading = 2'000;
constexpr std::int64_t shortest_span = 1'000'000;
constexpr std::int64_t longest_span = 1'000'000'000;

// The counter runs at one speed, and is the same on all cores.
bool has_steady_counter() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

class calibration {
 public:
  // The result is how many nanoseconds a tick has; 0: not known yet, or never.
  double look(std::uint64_t ticks, std::int64_t ns) noexcept {
    if (busy_.exchange(true, std::memory_order_acquire)) return 0;  // [calibration.busy]
    const double result = step(ticks, ns);
    busy_.store(false, std::memory_order_release);  // [calibration.busy]
    return result;
  }

 private:
  double step(std::uint64_t ticks, std::int64_t ns) noexcept {
    if (hopeless_) return 0;
    const std::int64_t span = ns - first_ns_;
    if (first_ns_ == 0 || span > longest_span) {
      hopeless_ = !has_steady_counter();
      first_ticks_ = __rdtsc();
      first_ns_ = now_ns();
      reading_ticks_ = __rdtsc() - first_ticks_;
      return 0;
    }
    if (span < shortest_span) return 0;
    const double each = static_cast<double>(span) / static_cast<double>(ticks - first_ticks_);
    const std::uint64_t reading = __rdtsc() - ticks + reading_ticks_;
    if (static_cast<double>(reading) * each <= static_cast<double>(longest_reading)) return each;
    first_ns_ = 0;
    return 0;
  }

  std::atomic<bool> busy_{false};
  bool hopeless_ = false;
  std::uint64_t first_ticks_ = 0, reading_ticks_ = 0;
  std::int64_t first_ns_ = 0;  // 0: there is none
};
constinit calibration calibrating;

}  // namespace

std::int64_t quick_clock::look() noexcept {
  const std::uint64_t before = __rdtsc();  // first: what passes until the other is read counts twice, not never
  const std::int64_t now = now_ns();
  const std::uint64_t window = window_ticks.load(std::memory_order_relaxed);
  was_ = now;
  looked_at_ = __rdtsc() - before <= window / 8 ? before : 0;  // if something came between the two, it counts this once only
  if (window == 0) {
    if (const double each = calibrating.look(before, now); each != 0) {
      ns_per_tick.store(static_cast<std::uint64_t>(each * 1.125 * 4294967296.0), std::memory_order_relaxed);
      window_ticks.store(static_cast<std::uint64_t>(static_cast<double>(window_ns) / each), std::memory_order_relaxed);
    }
  }
  return now;
}
#endif

}  // namespace weft::os
