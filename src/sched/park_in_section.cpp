#include "sched/park_in_section.h"

#include "sched/fork.h"
#include "sched/idle.h"
#include "sched/next.h"
#include "sched/park.h"
#include "sched/switch.h"

namespace weft::sched {

void park_in_section(machine* m, parked_hook hook, void* arg, detail::wait_reason why) noexcept {
  goroutine* g = m->curg;
  g->reason = why;
  g->waiting_since.store(sched.coarse_now.load(std::memory_order_relaxed), std::memory_order_relaxed);
  processor* p = m->p;
  p->counters.parks.bump();
  p->last_wait = why;
  gmp::transition(*g, status::running, status::waiting);
  m->after = {hook, g, nullptr, arg};
  goroutine* to = g->own_machine == nullptr ? pick_goroutine(m, p) : nullptr;
  leave_outermost(to != nullptr ? switch_to(m, g, to) : switch_to_g0(m, g));
}

void ready_in_section(machine* m, goroutine* g) noexcept {
  if (m == nullptr || g->is_thread) return detail::ready(g);
  gmp::transition(*g, status::waiting, status::runnable);
  if (m->p->counters.readied.bump_and_sample(gmp::timed_every)) [[unlikely]] gmp::begin_timing(*g);
  if (put_next(m->p, g)) {
    wake_processor_for_single();
  } else {
    wake_processor();
  }
}

void park_thread_until(detail::commit_fn commit, bool (*expire)(void*) noexcept, void* arg, detail::wait_reason why,
                       std::int64_t deadline_ns) noexcept {
  if (in_forked_child()) no_runtime_in_child();
  goroutine* g = thread_stand_in();
  g->reason = why;
  gmp::transition(*g, status::running, status::waiting);
  if (!commit(g, arg)) {
    gmp::transition(*g, status::waiting, status::runnable);
  } else if (!g->thread_note.sleep_until(deadline_ns)) {
    if (expire(arg)) {
      gmp::transition(*g, status::waiting, status::runnable);
    } else {
      g->thread_note.sleep();
    }
  }
  gmp::transition(*g, status::runnable, status::running);
}

}  // namespace weft::sched
