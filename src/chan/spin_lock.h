// A channel's lock: one word, taken by one locked instruction and released by a plain store. Held for some ten
// instructions, by goroutines only inside a section (so the holder runs, unless the kernel has descheduled it), and
// across the switch of a parking goroutine, whose hook releases it first thing on the other side.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/delay.h"
#include "base/lock.h"
#include "base/pause.h"

namespace weft::chans {

class spin_lock {
 public:
  void lock() noexcept {
    base::rank_acquired(base::lock_rank::wait_queue, false);
    lock_another();
  }

  // One attempt; if it fails, lock_late() is to follow, or nothing.
  bool try_lock() noexcept {
    base::delay();
    std::uint32_t free = 0;
    if (!word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) return false;  // [chan.lock]
    base::rank_acquired(base::lock_rank::wait_queue, true);
    return true;
  }
  void lock_late() noexcept {
    base::rank_acquired(base::lock_rank::wait_queue, false);
    lock_slow();
  }

  void unlock() noexcept {
    base::rank_released(base::lock_rank::wait_queue);
    unlock_another();
  }

  // Of several that one thread holds at once, in the order of their addresses, the check of ranks counts only the first
  // to be taken and the last to be released.
  void lock_another() noexcept {
    base::delay();
    std::uint32_t free = 0;
    // [chan.lock] acquire: sees all that the last holder did
    if (!word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) [[unlikely]]
      lock_slow();
  }

  void unlock_another() noexcept {
    base::delay();
    word_.store(0, std::memory_order_release);  // [chan.lock]
  }

 private:
  [[gnu::noinline, gnu::cold]] void lock_slow() noexcept {
    // Each look takes the line from who works with it. So: looks at growing intervals, in which the others get many
    // things done where they are, instead of one each in turn, with the line going to and fro.
    int pauses = 16;
    for (int i = 0;; ++i) {
      std::uint32_t free = 0;
      if (word_.load(std::memory_order_relaxed) == 0 &&
          word_.compare_exchange_weak(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return;
      }
      if (i >= 30) {
        ::sched_yield();  // the kernel took the holder off its core
        continue;
      }
      for (int k = 0; k < pauses; ++k) base::cpu_pause();
      pauses = pauses < 256 ? pauses * 2 : 256;
    }
  }

  std::atomic<std::uint32_t> word_{0};
};

}  // namespace weft::chans
