// The birth, life and end of a goroutine: record, stack, function, and the hand-over of the warm stack.
#pragma once

#include <utility>

#include "sched/scheduler.h"

namespace weft::sched {

// The goroutine to switch to: `r` itself, or a stack from the cache with the record `r` bound to it.
goroutine* goroutine_of(processor* p, runnable* r) noexcept;

// As goroutine_of(), but null where it is not a matter of nanoseconds: let g0 do it.
[[gnu::always_inline]] inline bool is_record(const runnable* r) noexcept { return r->ops != nullptr; }

// Whether it has a stack, and may run on any M.
[[gnu::always_inline]] inline bool can_switch_to(const runnable* r) noexcept {
  return !is_record(r) && static_cast<const goroutine*>(r)->own_machine == nullptr;
}

goroutine* bind_cached(processor* p, record* r) noexcept;

// A number for a goroutine of this P.
[[gnu::cold]] void reserve_ids(processor* p) noexcept;
[[gnu::always_inline]] inline std::uint64_t new_id(processor* p) noexcept {
  if (p->next_id == p->last_id) [[unlikely]] reserve_ids(p);
  return p->next_id++;
}

// In its goroutine: calls the function.
void run_body(goroutine* g);
inline void destroy_locals(goroutine* g) {
  if (g->locals != nullptr) g->destroy_locals(std::exchange(g->locals, nullptr));
}

// In a section: what a goroutine that has ended held goes back.
void retire(machine* m, goroutine* g) noexcept;

// The main goroutine of run(): the number 1 of the process the first time.
void reserve_main_id() noexcept;

}  // namespace weft::sched
