#include <weft/detail/countdown.h>

#include <weft/go.h>

#include "base/delay.h"
#include "sched/finishing.h"
#include "sync/guard.h"

namespace weft::detail {

// On the waiter's stack.
struct countdown::record {
  goroutine* g = nullptr;
  record* next = nullptr;
};

struct countdown::commit_argument {
  countdown* counter;
  record self;
};

// Off the waiter's stack. The push is the last thing that it does: the waiter may be running after it.
bool countdown::commit(goroutine* g, void* argument) noexcept {
  auto* arg = static_cast<commit_argument*>(argument);
  countdown& c = *arg->counter;
  std::int64_t w = c.word_.load(std::memory_order_acquire);
  do {
    if (w < one) return false;  // [countdown.zero]
    base::delay();
  } while (!c.word_.compare_exchange_weak(w, w + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  record& self = arg->self;
  self.g = g;
  if ((w & waiters) == 0) {
    base::delay();
    c.head_.store(&self, std::memory_order_release);  // [countdown.wait]
    return true;
  }
  for (base::backoff first;;) {
    self.next = c.head_.load(std::memory_order_relaxed);
    base::delay();
    // [countdown.wait]
    if (self.next != nullptr &&
        c.head_.compare_exchange_weak(self.next, &self, std::memory_order_release, std::memory_order_relaxed)) {
      return true;
    }
    first.once();
  }
}

void countdown::wait_slow(wait_reason why) noexcept {
  commit_argument argument{this, {}};
  park(&commit, &argument, why);
}

bool countdown::check_up(std::int64_t before, std::int64_t n) noexcept {
  const bool too_late = before >= 0 && before < one && (before & waiters) != 0;
  const bool too_many = (before >> 32) > max - n;
  if (!too_late && !too_many) return true;
  word_.fetch_sub(n * one, std::memory_order_relaxed);
  return false;
}

// Zero with waiters, or below it.
bool countdown::reached(std::int64_t before, std::int64_t n) noexcept {
  if ((before >> 32) < n) {
    word_.fetch_add(n * one, std::memory_order_relaxed);
    return false;
  }
  wake(before & waiters);
  return true;
}

// The list, once n records are on it (more of them come of a misuse). n becomes their number.
countdown::record* countdown::take(std::int64_t& n) noexcept {
  for (base::backoff wait;; wait.once()) {
    record* const first = head_.load(std::memory_order_acquire);  // [countdown.wait]
    std::int64_t found = 0;
    for (record* r = first; r != nullptr; r = r->next) ++found;
    if (found < n) continue;
    head_.store(nullptr, std::memory_order_relaxed);
    n = found;
    return first;
  }
}

void countdown::wake(std::int64_t n) noexcept {
  record* list = take(n);
  base::delay();
  word_.fetch_sub(n, std::memory_order_release);
  // The newest is readied first, and so the oldest stands in front.
  while (list != nullptr) {
    const sched::finishing_quietly section;  // all must be woken before others may run
    record* next = list->next;               // the record is gone once its goroutine runs
    ready(list->g);
    list = next;
  }
  checkpoint();
}

}  // namespace weft::detail
