// Letting others run, the long way; for the short one see yield_x86_64.S.
#include <weft/go.h>

#include <bit>
#include <cstddef>

#include <sched.h>

#include "sched/idle.h"
#include "sched/next.h"
#include "sched/park.h"
#include "sched/queues.h"
#include "sched/section.h"
#include "sched/steal.h"
#include "sched/switch.h"
#include "sched/yield_layout.h"

namespace weft::sched {
namespace {

// A look at other Ps takes cache lines from them, and whom it brings they are likely to fetch back; the more so one at their
// runnexts. So these come only once in so many yields in vain, powers of two.
constexpr std::uint32_t yields_before_look = 16;
constexpr std::uint32_t yields_before_look_at_runnexts = 16 * yields_before_look;

// A goroutine yields, and nobody else wants to run here: whether it may go on at once. Counts as a choice.
[[gnu::always_inline]] inline bool stays(processor* p) noexcept {
  if (p->runnext.load(std::memory_order_relaxed) != nullptr || !p->ring.empty_to_owner()) [[likely]] return false;
  const std::uint32_t picks = p->picks.load(std::memory_order_relaxed) + 1;
  if (is_look_due(p, picks) || sched.global_size.load(std::memory_order_relaxed) != 0) return false;
  if (!p->alone && picks % yields_before_look == 0) return false;
  p->picks.store(picks, std::memory_order_relaxed);
  p->begin_slice();
  return true;
}

// A goroutine yields for others to run, and this P has none: look elsewhere before it runs again itself.
[[gnu::noinline]] void look_elsewhere(machine* m, goroutine* from) noexcept {
  processor* p = m->p;
  if (sched.global_size.load(std::memory_order_relaxed) != 0) {
    put_global(from);
    return;
  }
  if (!p->alone) m->handoff = steal_for_yielder(m, p->picks.load(std::memory_order_relaxed) % yields_before_look_at_runnexts == 0);
  put_last(p, from);
  if (m->handoff != nullptr) wake_after_put_last();
}

// A goroutine that yields was in no queue for a moment, in which a spinner may have looked and gone to sleep. But not if there
// were others in the ring all the while, and visible since the locked instruction that took one of them: it would have
// found those. [wake.submit]
void after_yield(machine* m, goroutine* from, const gmp::after_switch&) noexcept {
  processor* p = m->p;
  const bool was_empty = p->ring.empty();
  put_last(p, from);
  if (was_empty) wake_after_put_last();
}

void after_yield_to_g0(machine* m, goroutine* from, const gmp::after_switch&) noexcept {
  if (m->handoff == nullptr && !m->p->has_work()) return look_elsewhere(m, from);
  put_last(m->p, from);
  wake_after_put_last();
}

// These two in the outermost section, which they end.
[[gnu::noinline]] void make_way(machine* m, goroutine* g) noexcept { leave_outermost(move_to_global(m, g)); }
[[gnu::noinline]] void switch_to_another(machine* m, goroutine* g) noexcept {
  gmp::leave_running(*g, status::runnable);
  m->after.from = g;
  if (goroutine* to = pick_goroutine(m, m->p)) {
    m->after.run = &after_yield;
    m = switch_to(m, g, to);
  } else {
    m->after.run = &after_yield_to_g0;
    m = switch_to_g0(m, g);
  }
  leave_outermost(m);
}

}  // namespace

// ---- called by yield_x86_64.S

// In the outermost section, which it ends. Needs no registers saved if the goroutine goes on at once.
void yield_by_queues(machine* m, goroutine* g) noexcept {
  m->p->counters.yields.bump();
  if (g->own_machine != nullptr) [[unlikely]] return make_way(m, g);
  if (stays(m->p)) return leave_outermost(m);
  switch_to_another(m, g);
}

// On a plain thread too, or if the P was revoked.
void yield_anyhow() noexcept {
  if (machine* m = enter_outermost()) {
    yield_by_queues(m, m->curg);
  } else {
    ::sched_yield();
  }
}

}  // namespace weft::sched

#if WEFT_HAS_SHORT_YIELDS
namespace weft::gmp {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(machine, locks) == WEFT_M_LOCKS && offsetof(machine, revoked) == WEFT_M_REVOKED);
static_assert(offsetof(machine, p) == WEFT_M_P && offsetof(machine, curg) == WEFT_M_CURG);
static_assert(offsetof(machine, thread_errno) == WEFT_M_ERRNO && offsetof(machine, thread_exceptions) == WEFT_M_EXCEPTIONS);
static_assert(offsetof(machine, after) == WEFT_M_AFTER && offsetof(after_switch, run) == 0 && offsetof(after_switch, from) == 8);
static_assert(offsetof(processor, short_yields_credit) == WEFT_P_SHORT_YIELDS_LEFT && std::endian::native == std::endian::little);
static_assert(offsetof(processor, alone) == WEFT_P_ALONE && offsetof(processor, attention) == WEFT_P_ATTENTION);
static_assert(offsetof(processor, runnext) == WEFT_P_RUNNEXT && offsetof(processor, ring) == WEFT_P_RING);
static_assert(decltype(processor::ring)::head_offset() == WEFT_RING_HEAD && decltype(processor::ring)::tail_offset() == WEFT_RING_TAIL);
static_assert(decltype(processor::ring)::slots_offset() == WEFT_RING_SLOTS && processor::ring_size == 256, "an index is a byte");
static_assert(offsetof(goroutine, ops) == WEFT_G_OPS && offsetof(goroutine, context) == WEFT_G_SP);
static_assert(offsetof(arch::context, pc) == WEFT_G_PC - WEFT_G_SP && offsetof(arch::context, fp) == WEFT_G_FP - WEFT_G_SP);
static_assert(offsetof(goroutine, saved) == WEFT_G_SAVED && offsetof(goroutine, own_machine) == WEFT_G_OWN_MACHINE);
static_assert(offsetof(goroutine, state) == WEFT_G_STATE && offsetof(detail::record, creator_pc) == WEFT_G_PC);
static_assert(static_cast<int>(status::runnable) == WEFT_RUNNABLE && static_cast<int>(status::running) == WEFT_RUNNING);
#pragma GCC diagnostic pop

}  // namespace weft::gmp
#else
void weft::yield() { weft::sched::yield_anyhow(); }
#endif
