// The next goroutine for a direct switch, from one goroutine to another without g0; and the switch to it of one that waits.
#pragma once

#include "sched/queues.h"
#include "sched/section.h"
#include "sched/spawn.h"
#include "sched/switch.h"

namespace weft::sched {

// `p` is m->p. If it is a matter of nanoseconds to switch to it; else null, and m->handoff may be set: g0 goes on from there.
[[gnu::always_inline]] inline goroutine* pick_goroutine(machine* m, processor* p, goroutine* parent = nullptr) noexcept {
  runnable* next = pick_fast(p, parent);
  if (next == nullptr) return nullptr;
  goroutine* to = is_record(next) ? bind_cached(p, static_cast<record*>(next)) : static_cast<goroutine*>(next);
  if (to != nullptr && to->own_machine == nullptr) [[likely]] return to;
  m->handoff = to != nullptr ? to : next;
  return nullptr;
}

// What happens once the goroutine is off its stack; self.arg is the argument given along with it.
using parked_hook = void (*)(machine* m, goroutine* from, const gmp::after_switch& self) noexcept;

// The running goroutine, in its outermost section, begins to wait and lets others run; `hook` makes it findable, or its
// waker let go of. Returns, outside of any section, when it has been readied.
[[gnu::always_inline]] inline void wait_and_switch(machine* m, parked_hook hook, void* arg, detail::wait_reason why) noexcept {
  goroutine* g = m->curg;
  g->reason = why;
  g->waiting_since.store(sched.coarse_now.load(std::memory_order_relaxed), std::memory_order_relaxed);
  processor* p = m->p;
  p->counters.parks.bump();
  p->last_wait = why;
  gmp::leave_running(*g, status::waiting);
  m->after.run = hook;
  m->after.from = g;
  m->after.arg = arg;
  goroutine* to = g->own_machine == nullptr ? pick_goroutine(m, p, g) : nullptr;
  leave_outermost(to != nullptr ? switch_to(m, g, to) : switch_to_g0(m, g));
}

}  // namespace weft::sched
