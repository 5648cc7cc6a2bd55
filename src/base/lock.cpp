#include "base/lock.h"

#include "base/fatal.h"
#include "base/pause.h"

namespace weft::base {

void mutex::lock_slow() noexcept {
  // Most holders are gone within this many pauses (about a microsecond); a longer wait means that the kernel took the
  // holder off its core.
  for (int i = 0; i < 64; ++i) {
    std::uint32_t free = 0;
    if (word_.load(std::memory_order_relaxed) == 0 &&
        word_.compare_exchange_weak(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
    cpu_pause();
  }
  while (word_.exchange(2, std::memory_order_acquire) != 0) futex_wait(word_, 2);
}

#ifdef WEFT_DEBUG_CHECKS
namespace {

// Locks are released by the thread that took them (a parking goroutine's lock is released by the hook that runs on the
// same thread after the switch), so a per-thread list is right. Not inlined: see gmp/current.h on cached addresses.
struct held_ranks {
  lock_rank rank[16];
  int count = 0;
};

[[gnu::noinline]] held_ranks& held() noexcept {
  thread_local held_ranks ranks;
  asm volatile("" ::: "memory");
  return ranks;
}

}  // namespace

void rank_acquired(lock_rank rank, bool tried) noexcept {
  held_ranks& h = held();
  // A lock that was only tried cannot deadlock. Two channels of a select are taken in address order.
  if (!tried && h.count != 0) {
    const lock_rank last = h.rank[h.count - 1];
    if (rank < last || (rank == last && rank != lock_rank::wait_queue && rank != lock_rank::timers)) {
      fatal("lock rank ", static_cast<std::uint32_t>(rank), " taken while rank ", static_cast<std::uint32_t>(last), " is held");
    }
  }
  if (h.count == 16) return;  // a select over many channels: deeper than the list, released in order
  h.rank[h.count++] = rank;
}

void rank_released(lock_rank rank) noexcept {
  held_ranks& h = held();
  for (int i = h.count; i-- > 0;) {
    if (h.rank[i] != rank) continue;
    for (--h.count; i < h.count; ++i) h.rank[i] = h.rank[i + 1];
    return;
  }
  if (h.count != 16) fatal("a lock of rank ", static_cast<std::uint32_t>(rank), " is released by a thread that does not hold it");
}
#endif

}  // namespace weft::base
