// Parking from within the section in which the caller has made itself findable, for waiters that hold a spin lock
// across the switch: between leaving that section and the one that detail::park() begins, the thread could be stopped
// or the goroutine be preempted, with the lock held.
#pragma once

#include <weft/detail/park.h>

#include <cstdint>

#include "sched/idle.h"
#include "sched/next.h"
#include "sched/section.h"

namespace weft::sched {

// In the outermost section of the running goroutine, which it ends: returns outside of any section once readied.
[[gnu::always_inline]] inline void park_in_section(machine* m, parked_hook hook, void* arg, detail::wait_reason why) noexcept {
  wait_and_switch(m, hook, arg, why);
}

// As detail::ready(), for a goroutine that is in a section already.
[[gnu::always_inline]] inline void ready_in_section(machine* m, goroutine* g) noexcept {
  if (g->is_thread) [[unlikely]] return detail::ready(g);
  gmp::transition(*g, status::waiting, status::runnable);
  put_readied(m->p, g);
}

// A plain thread parks until readied, or until the deadline. When that has come, expire(arg) tells whether the wait is
// over (true), or somebody is about to call ready().
void park_thread_until(detail::commit_fn commit, bool (*expire)(void*) noexcept, void* arg, detail::wait_reason why,
                       std::int64_t deadline_ns) noexcept;

// As leave(), but no preemption point: for what must still be done before others may run.
[[gnu::always_inline]] inline void leave_quietly(machine* m) noexcept {
  m->locks.store(m->locks.load(std::memory_order_relaxed) - 1, std::memory_order_release);  // [section.leave]
}

}  // namespace weft::sched
