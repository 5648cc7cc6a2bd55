#include <weft/shared_mutex.h>

#include <weft/go.h>

#include "base/delay.h"
#include "base/fatal.h"
#include "sched/section.h"
#include "sync/guard.h"
#include "sync/spin.h"
#include "sync/waiter.h"

namespace weft {

using detail::wait_queue;
using detail::waiter;

namespace {

constexpr std::int64_t starvation_ns = 1'000'000;

}  // namespace

// ---- writers. `mine` is `woken` if that stands for this waiter, else 0
// -----------------------------------------------

bool shared_mutex::spin(std::uint64_t mine) noexcept {
  for (int i = 0; i < detail::spin_rounds && detail::spinning_may_help(); ++i) {
    detail::spin_one_round();
    if (try_take(mine)) return true;
    if ((word_.load(std::memory_order_relaxed) & starving) != 0) return false;
  }
  return false;
}

// True: it was free after all, and is ours. False: in the queue, and somebody who will see it holds the lock.
bool shared_mutex::queue_up(waiter& self, std::uint64_t mine, bool starved) noexcept {
  sched::section section;
  wait_queue queue(writers_);
  std::uint64_t w = detail::take_guard(word_, guard);
  for (;;) {
    base::delay();
    if (is_free(w)) {
      // [shared_mutex.unlock], [guard]
      if (word_.compare_exchange_weak(w, (w | writer) & ~(guard | mine), std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        return true;
      }
      continue;
    }
    // Who was woken in vain stands in front again, where it was.
    if (mine != 0) {
      queue.push_front(self);
    } else {
      queue.push_back(self);
    }
    const std::uint64_t next = (w & ~(guard | mine)) | writers_queued | (starved ? starving : 0);
    if (word_.compare_exchange_strong(w, next, std::memory_order_release, std::memory_order_relaxed))
      return false;  // [guard]
    queue.remove(self);
  }
}

void shared_mutex::lock_slow() noexcept {
  if (spin(0)) return;
  const std::int64_t since = detail::now_ns();
  std::uint64_t mine = 0;
  for (bool starved = false;;) {
    waiter self;
    if (queue_up(self, mine, starved)) return;
    self.parker.park(detail::wait_reason::rwmutex_lock);
    starved = detail::now_ns() - since >= starvation_ns;
    if (self.granted) {
      if (!starved) word_.fetch_and(~starving, std::memory_order_relaxed);
      return;
    }
    mine = woken;
    if (try_take(mine) || (!starved && spin(mine))) return;
  }
}

// A writer leaves, and somebody waits: all readers that do, else the first writer.
void shared_mutex::let_next_in() noexcept {
  sched::section section;
  wait_queue writers(writers_);
  wait_queue readers(readers_);
  detail::wake_list next;
  std::uint64_t admitted = 0;
  std::uint64_t w = detail::take_guard(word_, guard) & ~guard;
  while (waiter* r = readers.pop()) {
    next.add(*r);
    admitted += reader;
  }
  if (admitted != 0) {
    w = (w & ~(writer | readers_queued)) + admitted;
  } else {
    waiter* first = writers.pop();
    next.add(*first);
    first->granted = (w & starving) != 0;
    if (!first->granted) w = (w & ~writer) | woken;
    if (writers.empty()) w &= ~(writers_queued | starving);
  }
  // Nobody else changes the word while both the guard and the lock are ours.
  detail::release_guard(word_, guard, [&](std::uint64_t) { return w; });  // [shared_mutex.unlock]
  next.wake_all();
}

void shared_mutex::unlock_slow() noexcept {
  std::uint64_t w = word_.load(std::memory_order_relaxed);
  for (;;) {
    if ((w & writer) == 0) base::fatal("sync: unlock of unlocked shared_mutex");
    const bool writer_is_due = (w & writers_queued) != 0 && ((w & woken) == 0 || (w & starving) != 0);
    if ((w & readers_queued) != 0 || writer_is_due) return let_next_in();
    base::delay();
    // [shared_mutex.unlock]
    if (word_.compare_exchange_weak(w, w & ~writer, std::memory_order_release, std::memory_order_relaxed)) break;
  }
  // The writer that was woken may need this P.
  checkpoint();
}

// ---- readers
// ---------------------------------------------------------------------------------------------------------

// True: may read. False: in the queue.
bool shared_mutex::queue_up_shared(waiter& self) noexcept {
  sched::section section;
  wait_queue queue(readers_);
  std::uint64_t w = detail::take_guard(word_, guard);
  for (;;) {
    base::delay();
    if ((w & holds_back_readers) == 0) {
      // [shared_mutex.unlock], [guard]
      if (word_.compare_exchange_weak(w, (w + reader) & ~guard, std::memory_order_acq_rel, std::memory_order_relaxed))
        return true;
      continue;
    }
    queue.push_back(self);
    const std::uint64_t next = (w | readers_queued) & ~guard;
    if (word_.compare_exchange_strong(w, next, std::memory_order_release, std::memory_order_relaxed))
      return false;  // [guard]
    queue.remove(self);
  }
}

void shared_mutex::lock_shared_slow() noexcept {
  for (int i = 0; i < detail::spin_rounds && detail::spinning_may_help(); ++i) {
    detail::spin_one_round();
    if (try_lock_shared()) return;
    if ((word_.load(std::memory_order_relaxed) & (writers_queued | readers_queued)) != 0) break;
  }
  waiter self;
  if (!queue_up_shared(self)) self.parker.park(detail::wait_reason::rwmutex_rlock);
}

// The last reader leaves, and a writer waits: it gets the lock.
void shared_mutex::unlock_shared_slow() noexcept {
  sched::section section;
  wait_queue writers(writers_);
  std::uint64_t w = detail::take_guard(word_, guard);
  if (w < reader) base::fatal("sync: unlock_shared of unlocked shared_mutex");
  // With the guard held no writer comes or goes, and with the bits above no reader comes; but one may have before.
  waiter* first = nullptr;
  for (;;) {
    std::uint64_t next = (w - reader) & ~guard;
    if (last_of_readers_and_awaited(w)) {
      if (first == nullptr) first = writers.pop();
      first->granted = true;
      next |= writer;
      if (writers.empty()) next &= ~(writers_queued | starving);
    }
    // [shared_mutex.unlock]
    if (word_.compare_exchange_weak(w, next, std::memory_order_acq_rel, std::memory_order_relaxed)) break;
  }
  if (first != nullptr) first->parker.wake();
}

}  // namespace weft
