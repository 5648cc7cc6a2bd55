#include "sched/parker.h"

#include "base/backoff.h"
#include "base/delay.h"
#include "sched/finishing.h"
#include "sched/park.h"
#include "sched/timers.h"

namespace weft::sched {

bool parker::commit(gmp::goroutine*, void* self) noexcept {
  auto* p = static_cast<parker*>(self);
  std::uint32_t expected = announced;
  base::delay();
  // [parker.parked] release: who readies the goroutine sees it parked
  return p->state_.compare_exchange_strong(expected, parked, std::memory_order_acq_rel, std::memory_order_acquire);
}

// Ends the wait with `outcome`; false if somebody else has. The parker may be gone after it was true.
bool parker::finish(std::uint32_t outcome, gmp::goroutine*& to_ready) noexcept {
  gmp::goroutine* g = g_;
  std::uint32_t state = state_.load(std::memory_order_acquire);
  while (state == announced || state == parked) {
    base::delay();
    if (!state_.compare_exchange_weak(state, outcome, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    to_ready = state == parked ? g : nullptr;
    return true;
  }
  return false;
}

gmp::goroutine* parker::take() noexcept {
  gmp::goroutine* g = nullptr;
  if (!finish(woken, g)) state_.store(released, std::memory_order_release);  // [parker.released]
  return g;
}

void parker::wake() noexcept {
  const finishing unstoppable;  // between the outcome and ready()
  if (gmp::goroutine* g = take()) detail::ready(g);
}

void parker::on_timer(void* self, std::uint64_t, std::int64_t) noexcept {
  const finishing unstoppable;
  gmp::goroutine* g = nullptr;
  static_cast<parker*>(self)->finish(expired, g);
  if (g != nullptr) detail::ready(g);
}

void parker::park(detail::wait_reason why) noexcept { detail::park(&commit, this, why); }

bool parker::park_until(detail::wait_reason why, std::int64_t deadline_ns) noexcept {
  if (g_->is_thread) return park_thread_until(why, deadline_ns);
  timers::timer_node timer(&on_timer, this);
  start_fresh_timer(timer, deadline_ns);
  detail::park(&commit, this, why);
  // Expired: the timer did it, and its callback touches neither parker nor timer after that.
  if (state_.load(std::memory_order_acquire) != woken) return false;
  stop_timer_sync(timer);
  return true;
}

bool parker::park_thread_until(detail::wait_reason why, std::int64_t deadline_ns) noexcept {
  goroutine* g = g_;
  g->reason = why;
  gmp::transition(*g, status::running, status::waiting);
  const bool slept = commit(g, this);
  if (!slept || !g->thread_note.sleep_until(deadline_ns)) {
    std::uint32_t expected = parked;
    if (!slept || state_.compare_exchange_strong(expected, expired, std::memory_order_acq_rel, std::memory_order_acquire)) {
      gmp::transition(*g, status::waiting, status::runnable);
    } else {
      g->thread_note.sleep();  // the waker was faster and is about to ready us
    }
  }
  gmp::transition(*g, status::runnable, status::running);
  return state_.load(std::memory_order_acquire) == woken;
}

void parker::await_waker() noexcept {
  // The waker is in a section: running, or descheduled by the kernel.
  for (base::backoff wait; state_.load(std::memory_order_acquire) != released; wait.once()) {  // [parker.released]
  }
}

}  // namespace weft::sched
