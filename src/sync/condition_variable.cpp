// A waiter can be claimed by a notifier, by a stop request, and by itself when its time is up; the one that wins is
// told by one word on the waiter's stack:
//
//   idle --link()--> linked --+--> notified        a notifier, with the guard held: it unlinks and wakes
//                             +--> linked + stop   a stop request: it unlinks and wakes
//                             +--> withdrawn       itself: it unlinks
//   any other state ----------+--> + stop          a stop request that comes when the waiter is not in the queue
//
// Whoever has won while the waiter was still in the queue may then take the guard: a condition_variable is not
// destroyed before its queue is empty (the destructor waits for that). Who has lost does not touch the
// condition_variable again: it may be gone, since every waiter was notified. Claims are made in a section, so that the
// destructor waits for code that is running.
//
//   [cond.stop] Both link() and the stop request are read-modify-writes of the claim. If link() is the later one, it
//               acquires what the request released, and the waiter's next look at the token sees the request; if the
//               request is the later one, it finds the waiter linked.
#include <weft/condition_variable.h>

#include <memory>
#include <stdexcept>
#include <stop_token>

#include "base/delay.h"
#include "sched/finishing.h"
#include "sched/section.h"
#include "sync/guard.h"
#include "sync/waiter.h"

namespace weft {

using detail::wait_queue;

void detail::throw_wait_without_lock() { throw std::logic_error("weft::condition_variable: a wait without the lock"); }

struct condition_variable::cond_waiter : detail::waiter {
  static constexpr std::uint32_t idle = 0, linked = 1, notified = 2, withdrawn = 3, stop = 4;

  std::atomic<std::uint32_t> claim{idle};

  // Ready for another wait. It is in no queue.
  void reset() noexcept {
    std::destroy_at(&parker);
    std::construct_at(&parker);
  }

  bool claim_as(std::uint32_t winner) noexcept {
    std::uint32_t expected = linked;
    base::delay();
    return claim.compare_exchange_strong(expected, winner, std::memory_order_acq_rel, std::memory_order_acquire);
  }
};

void condition_variable::link(cond_waiter& self) noexcept {
  sched::section section;
  detail::take_guard(word_, guard);
  wait_queue(head_).push_back(self);
  self.claim.exchange(cond_waiter::linked, std::memory_order_acq_rel);               // [cond.stop]
  detail::release_guard(word_, guard, [](std::uint32_t w) { return w | waiting; });  // [cond.wait]
}

// In a section.
void condition_variable::unlink(cond_waiter& self) noexcept {
  wait_queue queue(head_);
  detail::take_guard(word_, guard);
  queue.remove(self);
  detail::release_guard(word_, guard, [&](std::uint32_t w) { return queue.empty() ? w & ~waiting : w; });
}

// False: somebody else has claimed it, and will wake it.
bool condition_variable::withdraw(cond_waiter& self) noexcept {
  sched::section section;
  if (!self.claim_as(cond_waiter::withdrawn)) return false;
  unlink(self);
  return true;
}

// False: the deadline came first.
bool condition_variable::sleep(cond_waiter& self, std::int64_t deadline_ns) noexcept {
  if (deadline_ns == detail::no_deadline) {
    self.parker.park(detail::wait_reason::cond_wait);
  } else if (!self.parker.park_until(detail::wait_reason::cond_wait, deadline_ns)) {
    if (withdraw(self)) return false;
    self.parker.await_waker();
  }
  return true;
}

// A user's lock may throw. Then nobody waits any more; a notification that has come meanwhile is gone.
void condition_variable::unlock(detail::lock_ref lock, cond_waiter& self) {
  try {
    lock.unlock_it(lock.lock);
  } catch (...) {
    if (!withdraw(self)) self.parker.park(detail::wait_reason::cond_wait);
    throw;
  }
}

bool condition_variable::wait_until_ns(detail::lock_ref lock, std::int64_t deadline_ns) {
  cond_waiter self;
  link(self);
  unlock(lock, self);
  const bool in_time = sleep(self, deadline_ns);
  lock.lock_it(lock.lock);
  return in_time;
}

void condition_variable::notify(bool all) noexcept {
  const sched::finishing section;
  wait_queue queue(head_);
  detail::wake_list woken;
  detail::take_guard(word_, guard);
  detail::waiter* const last = head_ == nullptr ? nullptr : head_->prev;
  detail::waiter* next = nullptr;
  for (detail::waiter* w = head_; w != nullptr; w = next) {
    next = w == last ? nullptr : w->next;
    // One that has given up, and is about to unlink itself, is no longer a waiter.
    if (!static_cast<cond_waiter*>(w)->claim_as(cond_waiter::notified)) continue;
    queue.remove(*w);
    woken.add(*w);
    if (!all) break;
  }
  detail::release_guard(word_, guard, [&](std::uint32_t w) { return queue.empty() ? w & ~waiting : w; });
  woken.wake_all();
}

void condition_variable::await_late_waiters() noexcept {
  for (base::backoff wait; word_.load(std::memory_order_acquire) != 0;) wait.once();  // [guard]
}

// ---- stop tokens
// -----------------------------------------------------------------------------------------------------

// What request_stop() calls, on any thread. The waiter outlives it: who deregisters a callback waits until it has
// returned. That blocks a thread, so the callback must not give way to another goroutine meanwhile.
struct condition_variable::stopper {
  condition_variable* cond;
  cond_waiter* waiter;

  void operator()() const noexcept {
    const sched::finishing_quietly section;
    // [cond.stop]
    if (waiter->claim.fetch_or(cond_waiter::stop, std::memory_order_acq_rel) != cond_waiter::linked) return;
    cond->unlink(*waiter);
    waiter->parker.wake();
  }
};

bool condition_variable::wait_stop(detail::lock_ref lock, const std::stop_token& stop, detail::predicate_ref predicate,
                                   std::int64_t deadline_ns) {
  cond_waiter self;
  const std::stop_callback callback(stop, stopper{this, &self});
  while (!stop.stop_requested()) {
    if (predicate()) return true;
    self.reset();
    link(self);
    // The callback may have come, and found nobody to wake, just before link().
    if (stop.stop_requested() && withdraw(self)) break;
    unlock(lock, self);
    const bool in_time = sleep(self, deadline_ns);
    lock.lock_it(lock.lock);
    if (!in_time) break;
  }
  return predicate();
}

}  // namespace weft
