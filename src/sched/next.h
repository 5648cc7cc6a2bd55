// The next goroutine for a direct switch, from one goroutine to another without g0.
#pragma once

#include "sched/queues.h"
#include "sched/spawn.h"

namespace weft::sched {

// `p` is m->p. If it is a matter of nanoseconds to switch to it; else null, and m->handoff may be set: g0 goes on from there.
[[gnu::always_inline]] inline goroutine* pick_goroutine(machine* m, processor* p) noexcept {
  runnable* next = pick_fast(p);
  if (next == nullptr) return nullptr;
  goroutine* to = is_record(next) ? bind_cached(p, static_cast<record*>(next)) : static_cast<goroutine*>(next);
  if (to != nullptr && to->own_machine == nullptr) [[likely]] return to;
  m->handoff = to != nullptr ? to : next;
  return nullptr;
}

}  // namespace weft::sched
