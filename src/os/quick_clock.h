// What a deadline that is given as "so long from now" is counted from. A look at CLOCK_MONOTONIC takes longer than all else that
// it costs to set a timer; the processor's counter is read in half of that time.
//
// A reading is never before CLOCK_MONOTONIC, so that no deadline comes early, after it by some two microseconds at most, and never
// before an earlier one of the same thread. The counter is only asked how much of a window of 8 µs has passed since this thread
// last looked at the real clock, and its answer is exaggerated by an eighth, which is far more than a clock that is being
// adjusted differs from it. Used only where the kernel itself counts by this counter.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace weft::os {

// Both clocks at the same time, or nearly.
struct counter_reading {
  std::uint64_t ticks;
  std::int64_t ns;
  std::uint64_t took;  // in ticks
};

// Finds out how many nanoseconds a tick has, from readings that come anyway.
class counter_speed {
 public:
  // By any thread, with readings in any order; a wrong speed would make deadlines early for ever. 0: not known yet.
  double learn(const counter_reading& r) noexcept;

 private:
  double compare(const counter_reading& r) noexcept;

  std::atomic<bool> busy_{false};
  counter_reading last_{0, 0, 0};
  double before_ = 0;  // what the last two readings said; 0: nothing sound
};

// One a thread.
class quick_clock {
 public:
  // Whether the kernel counts by the counter. Before anybody uses one, for without it they are the real clock; and now and then
  // after that: the kernel may find that the counters of two cores differ, and go over to something else. Allocates nothing.
  static void look_at_kernel() noexcept;

  std::int64_t now_or_later() noexcept {
#if defined(__x86_64__)
    const std::int64_t reading = estimate();
    if (reading > last_) last_ = reading;
    return last_;
#else
    return now_ns();
#endif
  }

 private:
  // For what the counter is read out of order.
  static constexpr std::int64_t margin = 250;

#if defined(__x86_64__)
  std::int64_t estimate() noexcept {
    if (!allowed.load(std::memory_order_relaxed)) [[unlikely]] return now_ns();  // reading the counter may even be forbidden
    const std::uint64_t ticks = __rdtsc() - looked_at_;
    if (ticks < window_ticks.load(std::memory_order_acquire)) [[likely]] {  // [quick_clock.window]
      return was_ + margin + static_cast<std::int64_t>(ticks * ns_per_tick.load(std::memory_order_relaxed) >> 32);
    }
    return look();
  }
  std::int64_t look() noexcept;
#endif

  static std::atomic<bool> allowed;
  // Both 0 until it is known how fast the counter is; for ever if it cannot be used.
  static std::atomic<std::uint64_t> window_ticks;
  static std::atomic<std::uint64_t> ns_per_tick;  // exaggerated; 32 bits are behind the point

  std::uint64_t looked_at_ = 0;
  std::int64_t was_ = 0;
  std::int64_t last_ = 0;
};

}  // namespace weft::os
