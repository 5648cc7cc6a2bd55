// Changing goroutines. Every function here runs in a section (locks == 1) with m->after set to what must happen once the
// old goroutine is off its stack; it happens on the same thread, first thing on the other side.
#pragma once

#include "arch/context.h"
#include "arch/sanitizer.h"
#include "gmp/current.h"
#include "gmp/machine.h"
#include "sched/scheduler.h"
#include "sched/tracing.h"

namespace weft::sched {

[[gnu::always_inline]] inline void complete_switch(machine* m) noexcept {
  // By reference: a copy would be loaded in other widths than it was stored.
  if (m->after.run != nullptr) m->after.run(m, m->after.from, m->after);
}

// The thread's errno and exception state belong to the goroutine that runs on it.
[[gnu::always_inline]] inline void save_thread_state(machine* m, goroutine* g) noexcept {
  g->saved = gmp::word_of(*m->thread_errno);
  if (gmp::any_bits(m->thread_exceptions) == 0) [[likely]] return;
  g->saved |= gmp::with_exceptions;
  __builtin_memcpy(&g->exceptions, m->thread_exceptions, sizeof g->exceptions);
  __builtin_memset(m->thread_exceptions, 0, sizeof g->exceptions);
}
// Where there is no exception state.
[[gnu::always_inline]] inline void load_thread_state(machine* m, const goroutine* g) noexcept {
  *m->thread_errno = gmp::errno_of(g->saved);
  if ((g->saved & gmp::with_exceptions) == 0) [[likely]] return;
  __builtin_memcpy(m->thread_exceptions, &g->exceptions, sizeof g->exceptions);
}
[[gnu::cold, gnu::noinline]] inline void exchange_exceptions(machine* m, goroutine* from, const goroutine* to) noexcept {
  save_thread_state(m, from);
  load_thread_state(m, to);
}
// Both. Nearly always there is nothing to change, and a look costs less than a store: the core can do three of them while it
// writes one word back, and a switch is full of stores.
[[gnu::always_inline]] inline void exchange_thread_state(machine* m, goroutine* from, const goroutine* to) noexcept {
  const gmp::thread_word mine = gmp::word_of(*m->thread_errno);
  const gmp::thread_word theirs = to->saved;
  if (((theirs & gmp::with_exceptions) | gmp::any_bits(m->thread_exceptions)) != 0) [[unlikely]] return exchange_exceptions(m, from, to);
  if (from->saved != mine) from->saved = mine;
  if (theirs != mine) *m->thread_errno = gmp::errno_of(theirs);
}

// From goroutine to goroutine. `to` is runnable, in our hands and free to run on this M. Returns, once somebody has
// switched back, the M on which that was.
[[gnu::always_inline]] inline machine* switch_to(machine* m, goroutine* from, goroutine* to, bool dying = false) noexcept {
  if (is_traced(m->p)) [[unlikely]] trace_switch(m->p, from, to);
  exchange_thread_state(m, from, to);
  gmp::transition(*to, status::runnable, status::running);
  m->curg = to;
  arch::before_switch(from->fiber, to->fiber, dying);
  m = static_cast<machine*>(arch::switch_context(&from->context, &to->context, m));
  arch::after_switch(from->fiber);
  complete_switch(m);
  return m;
}

// From a goroutine to the scheduler's own stack. Returns as switch_to() does.
[[gnu::always_inline]] inline machine* switch_to_g0(machine* m, goroutine* from, bool dying = false) noexcept {
  save_thread_state(m, from);
  if (m->p != nullptr) {
    m->p->counters.switches_via_g0.bump();
    if (is_traced(m->p)) [[unlikely]] trace_switch(m->p, from, nullptr);
  }
  m->curg = nullptr;
  arch::before_switch(from->fiber, m->g0_fiber, dying);
  m = static_cast<machine*>(arch::switch_context(&from->context, &m->g0, m));
  arch::after_switch(from->fiber);
  complete_switch(m);
  return m;
}

// From the scheduler's own stack to a goroutine; returns when one switches back to g0.
inline void switch_from_g0(machine* m, goroutine* to) noexcept {
  m->after.run = nullptr;  // g0 needs nothing done once it is left
  if (is_traced(m->p)) [[unlikely]] trace_start(m->p, to);
  load_thread_state(m, to);
  gmp::transition(*to, status::runnable, status::running);
  m->curg = to;
  arch::before_switch(m->g0_fiber, to->fiber, false);
  arch::switch_context(&m->g0, &to->context, m);
  arch::after_switch(m->g0_fiber);
  complete_switch(m);  // g0 stays on its thread
}

}  // namespace weft::sched
