// The lock of a P's timers: one word, taken by one locked instruction and released by a plain store. Held for some tens of
// instructions, by goroutines only inside a section (so the holder runs, unless the kernel has descheduled it).
//
//   [spin_lock] taking it acquires all that the last holder did
#pragma once

#include <atomic>
#include <cstdint>

#include "base/backoff.h"
#include "base/delay.h"
#include "base/lock.h"
#include "base/pause.h"

namespace weft::base {

inline constexpr int usual_pauses = 16;

// Until attempt() is true, for a lock that was somebody's a moment ago. Each look takes the line from who works with it. So: looks at
// growing intervals, the first one after so many pauses, in which the others get many things done where they are, instead of one
// each in turn, with the line going to and fro.
template <class Attempt>
void attempt_at_intervals(Attempt attempt, int pauses = usual_pauses) noexcept {
  int looks = 30;
  backoff descheduled(0);  // the holder
  while (!attempt()) {
    if (looks-- <= 0) {
      descheduled.once();
      continue;
    }
    for (int k = 0; k < pauses; ++k) cpu_pause();
    pauses = pauses < 256 ? pauses * 2 : 256;
  }
}

template <lock_rank Rank>
class WEFT_CAPABILITY("mutex") spin_lock {
 public:
  void lock() noexcept WEFT_ACQUIRE() {
    rank_acquired(Rank, false);
    if (!take()) [[unlikely]] lock_slow();
  }

  bool try_lock() noexcept WEFT_TRY_ACQUIRE(true) {
    if (!take()) return false;
    rank_acquired(Rank, true);
    return true;
  }

  void unlock() noexcept WEFT_RELEASE() {
    rank_released(Rank);
    delay();
    word_.store(0, std::memory_order_release);  // [spin_lock]
  }

 private:
  bool take() noexcept {
    delay();
    std::uint32_t free = 0;
    return word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);  // [spin_lock]
  }

  [[gnu::noinline, gnu::cold]] void lock_slow() noexcept {
    attempt_at_intervals([this] { return word_.load(std::memory_order_relaxed) == 0 && take(); });
  }

  std::atomic<std::uint32_t> word_{0};
};

}  // namespace weft::base
