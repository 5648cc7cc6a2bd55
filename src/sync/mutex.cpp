#include <weft/mutex.h>

#include <weft/go.h>

#include "base/delay.h"
#include "base/fatal.h"
#include "sched/finishing.h"
#include "sched/section.h"
#include "sync/guard.h"
#include "sync/spin.h"
#include "sync/waiter.h"

namespace weft::detail {
namespace {

constexpr std::int64_t starvation_ns = 1'000'000;

// For the metrics, whatever the outcome of the wait.
struct wait_account {
  const wait_reason why;
  std::int64_t ns = 0;
  ~wait_account() {
    if (ns != 0 && why == wait_reason::mutex_lock) sched::sched.mutex_wait_ns.fetch_add(ns, std::memory_order_relaxed);
  }
};

}  // namespace

// `mine`, here and below: the bit `woken` if it stands for this waiter, else 0. It goes as the waiter takes the lock or
// queues.

bool mutex_core::try_take(std::uint32_t mine) noexcept {
  std::uint32_t w = word_.load(std::memory_order_relaxed);
  while ((w & held) == 0) {
    base::delay();
    // [mutex.unlock]
    if (word_.compare_exchange_weak(w, held_with(w & ~mine), std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

// The guard; and who holds the lock will look at the rest of the word before freeing it.
std::uint32_t mutex_core::take_queue() noexcept {
  return take_guard(word_, guard, [](std::uint32_t w) { return (w & held) != 0 ? held_with(w | guard) : w | guard; });
}

bool mutex_core::spin(std::uint32_t mine) noexcept {
  for (int i = 0; i < spin_rounds && spinning_may_help(); ++i) {
    spin_one_round();
    if (try_take(mine)) return true;
    if ((word_.load(std::memory_order_relaxed) & starving) != 0) return false;
  }
  return false;
}

// True: the lock was free after all, and is ours. False: in the queue, with the lock held by somebody who will see it.
bool mutex_core::queue_up(waiter& self, std::uint32_t mine, bool starved) noexcept {
  sched::section section;
  wait_queue queue(head_);
  std::uint32_t w = take_queue();
  for (;;) {
    base::delay();
    if ((w & held) == 0) {
      // [mutex.unlock], [guard]
      if (word_.compare_exchange_weak(w, held_with(w & ~(guard | mine)), std::memory_order_acq_rel,
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
    const std::uint32_t next = held_with((w & ~(guard | mine)) | queued | (starved ? starving : 0));
    if (word_.compare_exchange_strong(w, next, std::memory_order_release, std::memory_order_relaxed))
      return false;  // [guard]
    queue.remove(self);
  }
}

// The deadline came first. False: somebody has taken us off the queue, and is about to wake us.
bool mutex_core::withdraw(waiter& self) noexcept {
  sched::section section;
  wait_queue queue(head_);
  take_queue();
  const bool was_linked = self.linked();
  if (was_linked) queue.remove(self);
  release_guard(word_, guard, [&](std::uint32_t w) { return queue.empty() ? w & ~(queued | starving) : w; });
  return was_linked;
}

// Out of time, but woken: takes the lock if it is free, else leaves it to its holder to wake another.
bool mutex_core::take_or_pass_on() noexcept {
  std::uint32_t w = word_.load(std::memory_order_relaxed);
  for (;;) {
    const bool free = (w & held) == 0;
    base::delay();
    // [mutex.unlock]
    if (word_.compare_exchange_weak(w, held_with(w & ~woken), std::memory_order_acquire, std::memory_order_relaxed))
      return free;
  }
}

// Two functions, so that who gets the lock beside those that are on their way to it needs no registers saved.
bool mutex_core::lock_slow(std::int64_t deadline_ns, wait_reason why) noexcept { return try_take(0) || lock_later(deadline_ns, why); }

[[gnu::noinline]] bool mutex_core::lock_later(std::int64_t deadline_ns, wait_reason why) noexcept {
  if (spin(0)) return true;
  const std::int64_t since = now_ns();
  if (deadline_ns <= since) return false;
  std::uint32_t mine = 0;
  wait_account waited{why};
  for (bool starved = false;;) {
    waiter self;
    if (queue_up(self, mine, starved)) return true;
    if (deadline_ns == no_deadline) {
      self.parker.park(why);
    } else if (!self.parker.park_until(why, deadline_ns)) {
      if (withdraw(self)) return false;
      self.parker.await_waker();
      if (!self.granted) return take_or_pass_on();
    }
    waited.ns = now_ns() - since;
    starved = waited.ns >= starvation_ns;
    if (self.granted) {
      if (!starved) word_.fetch_and(~starving, std::memory_order_relaxed);
      return true;
    }
    mine = woken;
    if (try_take(mine) || (!starved && spin(mine))) return true;
  }
}

// The holder of a lock that somebody waits for.
void mutex_core::hand_on_or_wake() noexcept {
  const sched::finishing section;
  wait_queue queue(head_);
  take_queue();
  wake_list passed_by;
  waiter* next = queue.pop_able(passed_by);
  const std::uint32_t gone = queue.empty() ? queued | starving : 0;
  if (next == nullptr) {  // it gave up just now; or all are frozen
    release_guard(word_, guard, [gone](std::uint32_t w) { return w & ~(held | gone); });  // [mutex.unlock]
  } else {
    next->granted = (word_.load(std::memory_order_relaxed) & starving) != 0;
    // [mutex.unlock]
    release_guard(word_, guard,
                  [&](std::uint32_t w) { return next->granted ? w & ~gone : ((w & ~held) | woken) & ~gone; });
    next->parker.wake();
  }
  passed_by.wake_all();
}

// The lock is still held, whether 1 was subtracted or not.
void mutex_core::unlock_slow() noexcept {
  std::uint32_t w = word_.load(std::memory_order_relaxed);
  for (;;) {
    if ((w & held) == 0 || (w & held) == held) base::fatal("sync: unlock of unlocked mutex");
    // Who was woken wakes the next one; not so if it is frozen.
    if ((w & queued) != 0 && ((w & woken) == 0 || (w & starving) != 0 || sched::is_world_frozen())) return hand_on_or_wake();
    base::delay();
    // [mutex.unlock]
    if (word_.compare_exchange_weak(w, w & ~held, std::memory_order_release, std::memory_order_relaxed)) break;
  }
  // The waiter that was woken may need this P.
  checkpoint();
}

}  // namespace weft::detail

namespace weft {

void recursive_mutex::unlock() noexcept {
  if (owner_.load(std::memory_order_relaxed) != detail::self_number()) base::fatal("sync: unlock of unlocked mutex");
  if (--depth_ != 0) return;
  owner_.store(0, std::memory_order_relaxed);
  core_.unlock();
}

}  // namespace weft
