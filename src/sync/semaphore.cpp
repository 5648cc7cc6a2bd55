#include <weft/semaphore.h>

#include "base/delay.h"
#include "sched/finishing.h"
#include "sched/section.h"
#include "sync/guard.h"
#include "sync/waiter.h"

namespace weft::detail {

void semaphore_core::misused() { throw std::logic_error("weft::counting_semaphore: a release beyond max()"); }

// True: there was a permit after all, and it is ours. False: in the queue.
bool semaphore_core::queue_up(waiter& self) noexcept {
  sched::section section;
  wait_queue queue(head_);
  std::int64_t w = take_guard(word_, guard);
  for (;;) {
    base::delay();
    if (w >= one) {
      // [semaphore.release], [guard]
      if (word_.compare_exchange_weak(w, (w - one) & ~guard, std::memory_order_acq_rel, std::memory_order_relaxed))
        return true;
      continue;
    }
    queue.push_back(self);
    // [guard]
    if (word_.compare_exchange_strong(w, (w | waiting) & ~guard, std::memory_order_release, std::memory_order_relaxed))
      return false;
    queue.remove(self);
  }
}

// The deadline came first. False: a release has taken us off the queue, and the permit is ours.
bool semaphore_core::withdraw(waiter& self) noexcept {
  sched::section section;
  wait_queue queue(head_);
  take_guard(word_, guard);
  const bool was_linked = self.linked();
  if (was_linked) queue.remove(self);
  release_guard(word_, guard, [&](std::int64_t w) { return queue.empty() ? w & ~waiting : w; });
  return was_linked;
}

bool semaphore_core::acquire_slow(std::int64_t deadline_ns) noexcept {
  if (deadline_ns != no_deadline && deadline_ns <= now_ns()) return false;
  waiter self;
  if (queue_up(self)) return true;
  if (deadline_ns == no_deadline) {
    self.parker.park(wait_reason::semaphore);
  } else if (!self.parker.park_until(wait_reason::semaphore, deadline_ns)) {
    if (withdraw(self)) return false;
    self.parker.await_waker();
  }
  return true;
}

// Somebody waited a moment ago. The count is zero while somebody does: then it is known before a permit is handed out whether they
// are too many.
void semaphore_core::release_slow(std::ptrdiff_t n, std::ptrdiff_t max) {
  if (n < 0 || n > max) misused();
  bool too_many = false;
  {
    const sched::finishing section;
    wait_queue queue(head_);
    wake_list woken;
    take_guard(word_, guard);
    std::ptrdiff_t left = n;
    for (; left > 0 && !queue.empty(); --left) woken.add(*queue.pop());
    // [semaphore.release]
    release_guard(word_, guard, [&](std::int64_t w) {
      too_many = left > max - (w >> 2);
      return (queue.empty() ? w & ~waiting : w) + (too_many ? 0 : left * one);
    });
    woken.wake_all();
  }
  if (too_many) misused();
}

}  // namespace weft::detail
