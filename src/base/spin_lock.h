// The lock of a channel, and of a P's timers: one word, taken by one locked instruction and released by a plain store. Held
// for some tens of instructions, by goroutines only inside a section (so the holder runs, unless the kernel has descheduled
// it), and across the switch of a parking goroutine, whose hook releases it first thing on the other side.
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

template <lock_rank Rank>
class WEFT_CAPABILITY("mutex") spin_lock {
 public:
  void lock() noexcept WEFT_ACQUIRE() {
    rank_acquired(Rank, false);
    lock_another();
  }

  // One attempt; if it fails, lock_late() is to follow, or nothing.
  bool try_lock() noexcept WEFT_TRY_ACQUIRE(true) {
    delay();
    std::uint32_t free = 0;
    if (!word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) return false;  // [spin_lock]
    rank_acquired(Rank, true);
    return true;
  }
  // `pauses`: how long until the first look.
  void lock_late(int pauses = usual_pauses) noexcept WEFT_ACQUIRE() {
    rank_acquired(Rank, false);
    lock_slow(pauses);
  }

  void unlock() noexcept WEFT_RELEASE() {
    rank_released(Rank);
    unlock_another();
  }

  // Of several that one thread holds at once, in the order of their addresses, the check of ranks counts only the first
  // to be taken and the last to be released.
  void lock_another() noexcept WEFT_NO_LOCK_ANALYSIS {
    delay();
    std::uint32_t free = 0;
    // [spin_lock]
    if (!word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) [[unlikely]]
      lock_slow(usual_pauses);
  }

  void unlock_another() noexcept WEFT_NO_LOCK_ANALYSIS {
    delay();
    word_.store(0, std::memory_order_release);  // [spin_lock]
  }

 private:
  static constexpr int usual_pauses = 16;

  // Each look takes the line from who works with it. So: looks at growing intervals, in which the others get many things done
  // where they are, instead of one each in turn, with the line going to and fro.
  [[gnu::noinline, gnu::cold]] void lock_slow(int pauses) noexcept {
    int looks = 30;
    backoff descheduled(0);  // the holder
    for (;;) {
      std::uint32_t free = 0;
      if (word_.load(std::memory_order_relaxed) == 0 &&
          word_.compare_exchange_weak(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) {  // [spin_lock]
        return;
      }
      if (looks-- <= 0) {
        descheduled.once();
        continue;
      }
      for (int k = 0; k < pauses; ++k) cpu_pause();
      pauses = pauses < 256 ? pauses * 2 : 256;
    }
  }

  std::atomic<std::uint32_t> word_{0};
};

}  // namespace weft::base
