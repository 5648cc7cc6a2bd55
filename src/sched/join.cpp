#include "sched/join.h"

#include <weft/detail/event.h>
#include <weft/detail/record.h>

#include "base/delay.h"
#include "sched/idle.h"
#include "sched/locked.h"
#include "sched/park.h"
#include "sched/queues.h"
#include "sched/records.h"
#include "sched/section.h"
#include "sched/spawn.h"
#include "sched/stack.h"
#include "sched/switch.h"
#include "sched/tracing.h"

namespace weft::sched {
namespace {

// Takes r out of runnext, if it is still there.
bool claim_next(processor* p, runnable* r) noexcept {
  base::delay();
  if (p->alone) {
    p->runnext.store(nullptr, std::memory_order_relaxed);
    return true;
  }
  return p->runnext.compare_exchange_strong(r, nullptr, std::memory_order_acq_rel, std::memory_order_relaxed);
}

// Out of the place where it was found, it is ours, and may be looked at.
bool is_joined_by(const runnable* r, const void* joiner) noexcept {
  if (!is_record(r) || !r->ops->has_joiner) return false;
  return *reinterpret_cast<const void* const*>(static_cast<const record*>(r)->payload) == joiner;
}

record* claim(processor* p, const runnable* child, const void* joiner, bool in_turn) noexcept {
  runnable* r = p->runnext.load(std::memory_order_relaxed);
  if (r == child) {
    if (!claim_next(p, r)) return nullptr;
  } else {
    r = p->ring.peek_last();
    if (r != child || in_turn || !take_last(p)) return nullptr;
  }
  if (is_joined_by(r, joiner)) [[likely]] return static_cast<record*>(r);
  submit_next(p, r);  // another goroutine's by now. While we held it, others may have looked for work in vain [wake.submit]
  return nullptr;
}

// Somebody waits for its end.
bool is_joined(const goroutine* g) noexcept {
  return g->body != nullptr && g->body->ops != nullptr && g->body->ops->has_joiner;
}

// The newest of many, if it is one of the joiner's: it goes before the older ones, as in take_newest_child(). Only where who waits
// is waited for itself, which makes a tree: there it is a matter of how many are begun at a time. Elsewhere they run in turn.
record* claim_newest(processor* p, const goroutine* waiter, const void* joiner) noexcept {
  runnable* r = is_joined(waiter) ? take_newest_of_many(p) : nullptr;
  if (r == nullptr) return nullptr;
  if (!is_joined_by(r, joiner)) {
    put_back_newest(p, r);
    return nullptr;
  }
  p->counters.depth_first.bump();
  p->went_deep = true;
  return static_cast<record*>(r);
}

bool can_lend(const goroutine* g) noexcept {
  const auto left = static_cast<const std::byte*>(__builtin_frame_address(0)) - g->stack_low;
  return g->own_machine == nullptr && left >= static_cast<std::ptrdiff_t>(default_stack_size());
}

// In a section. The goroutine object becomes the borrower's.
[[gnu::always_inline]] inline void lend(machine* m, goroutine* g, record* borrower, gmp::lender& l) noexcept {
  l.outer = g->lender;
  l.id = g->id;
  l.body = g->body;
  l.locals = g->locals;
  l.destroy_locals = g->destroy_locals;
  l.is_main = g->is_main;
  l.waiting_since = sched.coarse_now.load(std::memory_order_relaxed);
  l.saved_errno = *m->thread_errno;
  __builtin_memcpy(l.exceptions, m->thread_exceptions, sizeof l.exceptions);
  g->lender = &l;
  g->id = new_id(m->p);
  g->body = borrower;
  g->locals = nullptr;
  g->is_main = false;
  *m->thread_errno = 0;
  __builtin_memset(m->thread_exceptions, 0, sizeof l.exceptions);
}

// In a section, maybe on another M than before. The borrower has ended.
[[gnu::always_inline]] inline void take_back(machine* m, goroutine* g, const gmp::lender& l) noexcept {
  processor* p = m->p;
  put_record(p, g->body);
  p->counters.finished.bump();
  p->counters.joined_in_place.bump();
  g->lender = l.outer;
  g->id = l.id;
  g->body = l.body;
  g->locals = l.locals;
  g->destroy_locals = l.destroy_locals;
  g->is_main = l.is_main;
  *m->thread_errno = l.saved_errno;
  __builtin_memcpy(m->thread_exceptions, l.exceptions, sizeof l.exceptions);
}

extern "C" __attribute__((visibility("hidden"), used)) void weft_borrower_main(goroutine* g) {
  run_body(g);
  destroy_locals(g);
}

// In a section, which it ends.
[[gnu::always_inline]] inline void run_borrower(machine* m, goroutine* g, record* borrower, gmp::lender& l) noexcept {
  const bool traced = is_traced(m->p);
  if (traced) [[unlikely]] trace_lending(m->p, g, l);
  lend(m, g, borrower, l);
  if (traced) [[unlikely]] {
    trace_birth(m->p, g);
    trace_start(m->p, g);
  }
  leave(m);
  arch::weft_goroutine_borrow(g);
  m = enter();
  const bool tied = g->lock_depth != 0;
  if (tied) [[unlikely]] end_locked(m, g);
  if (is_traced(m->p)) [[unlikely]] trace_stop(m->p, g, trace::why::ended);
  take_back(m, g, l);
  if (is_traced(m->p)) [[unlikely]] trace_start(m->p, g);
  if (tied) [[unlikely]] m = move_to_global(m, g);  // the thread ends with the borrower
  leave(m);
}

}  // namespace
}  // namespace weft::sched

namespace weft::detail {

using namespace weft::sched;

bool join_in_place(const record* child, const void* joiner, wait_reason why, bool in_turn, event* sole) noexcept {
  machine* m = enter();
  if (m == nullptr) return false;
  goroutine* g = m->curg;
  record* borrower = nullptr;
  if (can_lend(g)) borrower = child != nullptr ? claim(m->p, child, joiner, in_turn) : claim_newest(m->p, g, joiner);
  if (borrower == nullptr) {
    leave(m);
    return false;
  }
  if (sole != nullptr) sole->set_in_place();
  gmp::lender l;
  l.context = arch::callers_context();
  l.reason = why;
  run_borrower(m, g, borrower, l);
  return true;
}

}  // namespace weft::detail
