// What a deadline that is given as "so long from now" is counted from. A look at CLOCK_MONOTONIC takes longer than all else that
// it costs to set a timer; the processor's counter is read in half of that time.
//
// A reading is never before CLOCK_MONOTONIC, so that no deadline comes early, and after it by two microseconds at most. The
// counter is only asked how much of `window` has passed since this thread last looked at the real clock, and its answer is
// exaggerated by an eighth: more than a clock that is being adjusted can differ from it (adjtimex allows a tenth), or than
// one that was not to be trusted could be wrong by in so short a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace weft::os {

// One a thread.
class quick_clock {
 public:
  std::int64_t now_or_later() noexcept {
#if defined(__x86_64__)
    const std::uint64_t ticks = __rdtsc() - looked_at_;
    // relaxed: a number by itself
    if (ticks < window_ticks.load(std::memory_order_relaxed)) [[likely]] {
      return was_ + margin + static_cast<std::int64_t>(ticks * ns_per_tick.load(std::memory_order_relaxed) >> 32);
    }
    return look();
#else
    return now_ns();
#endif
  }

 private:
  // For what the counter is read out of order.
  static constexpr std::int64_t margin = 50;

  std::int64_t look() noexcept;

  // Both 0 until it is known how fast the counter is; for ever if it cannot be used.
  static std::atomic<std::uint64_t> window_ticks;
  static std::atomic<std::uint64_t> ns_per_tick;  // exaggerated; 32 bits are behind the point

  std::uint64_t looked_at_ = 0;
  std::int64_t was_ = 0;
};

}  // namespace weft::os
