#include "sched/park.h"

#include <weft/detail/park.h>
#include <weft/go.h>

#include <sched.h>

#include "base/delay.h"
#include "os/clock.h"
#include "sched/fork.h"
#include "sched/idle.h"
#include "sched/next.h"
#include "sched/queues.h"
#include "sched/section.h"
#include "sched/spawn.h"
#include "sched/steal.h"
#include "sched/switch.h"

namespace weft::sched {
namespace {

// Hooks, run off the goroutine's stack.
void after_park(machine* m, goroutine* from, const gmp::after_switch& self) noexcept {
  base::delay();
  if (self.commit(from, self.arg)) return;
  gmp::transition(*from, status::waiting, status::runnable);
  put_readied(m->p, from);
}

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
  if (sched.global_size.load(std::memory_order_relaxed) != 0) return put_global(from);
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

// Where nobody else takes from the ring, a goroutine may stand there before it is off its stack: the first in line for the one
// that yields, which goes to the end. False, and nothing has happened, if that is not so simple. Whether the P calls for attention
// is seen in a moment, when the other one leaves its section.
[[gnu::always_inline]] inline bool trade_places(processor* p, goroutine* g, goroutine*& to) noexcept {
  const std::uint32_t picks = p->picks.load(std::memory_order_relaxed) + 1;
  if (is_look_due(p, picks) || p->runnext.load(std::memory_order_relaxed) != nullptr) return false;
  runnable* first = nullptr;
  runnable* second = nullptr;
  if (!p->ring.exchange_unshared(g, can_switch_to, first, second)) return false;
  base::prefetch(second);
  p->picks.store(picks, std::memory_order_relaxed);
  if (p->runnext_streak != 0) p->runnext_streak = 0;
  p->begin_slice();
  to = static_cast<goroutine*>(first);
  return true;
}

// In the outermost section, which it ends.
[[gnu::noinline]] void yield_by_queues(machine* m, goroutine* g) noexcept {
  if (g->own_machine != nullptr) [[unlikely]] return leave_outermost(move_to_global(m, g));
  if (stays(m->p)) return leave_outermost(m);
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

[[gnu::noinline]] void yield_alone(machine* m, goroutine* g) noexcept {
  goroutine* to = nullptr;
  if (!trade_places(m->p, g, to)) return yield_by_queues(m, g);
  gmp::leave_running(*g, status::runnable);
  if (m->after.run != nullptr) m->after.run = nullptr;
  leave_outermost(switch_to(m, g, to));
}

[[gnu::noinline]] void yield_anyhow() noexcept {
  if (machine* m = enter_outermost()) {
    m->p->counters.yields.bump();
    yield_by_queues(m, m->curg);
  } else {
    ::sched_yield();
  }
}

void after_preemption(machine*, goroutine* from, const gmp::after_switch&) noexcept {
  put_global(from);
  wake_processor();
}

void park_thread(detail::commit_fn commit, void* arg, detail::wait_reason why) noexcept {
  if (in_forked_child()) no_runtime_in_child();
  goroutine* g = thread_stand_in();
  g->reason = why;
  gmp::transition(*g, status::running, status::waiting);
  if (commit(g, arg)) {
    g->thread_note.sleep();
  } else {
    gmp::transition(*g, status::waiting, status::runnable);
  }
  gmp::transition(*g, status::runnable, status::running);
}

void ready_from_outside(goroutine* g) noexcept {
  if (in_forked_child()) no_runtime_in_child();
  trace_ready_outside(g);
  put_global(g);
  wake_processor();
}

}  // namespace

machine* attend(machine* m) noexcept {
  goroutine* g = m->curg;
  if (g == nullptr) return m;  // on g0: find_work looks by itself
  m->p->counters.preempted_slices.bump();
  return move_to_global(m, g);
}

void attend_and_leave(machine* m) noexcept {
  attend(m)->locks.store(0, std::memory_order_release);  // [section.leave]
}

machine* move_to_global(machine* m, goroutine* g) noexcept {
  gmp::transition(*g, status::running, status::runnable);
  m->after = {&after_preemption, g, nullptr, nullptr};
  return switch_to_g0(m, g);
}

goroutine* thread_stand_in() noexcept {
  // Touched by this thread only while it runs, and by the one waker while it sleeps.
  thread_local goroutine* g = nullptr;
  if (g == nullptr) {
    thread_local goroutine storage;
    storage.is_thread = true;
    storage.state.store(status::running, std::memory_order_relaxed);
    g = &storage;
  }
  return g;
}

}  // namespace weft::sched

namespace weft::detail {

using namespace weft::sched;

goroutine* self() noexcept {
  const machine* m = current_machine();
  return m != nullptr ? m->curg : thread_stand_in();
}

std::uint64_t self_number() noexcept {
  const machine* m = current_machine();
  // Threads have even numbers: addresses of what is theirs alone.
  return m != nullptr ? 2 * m->curg->id + 1 : reinterpret_cast<std::uintptr_t>(thread_stand_in());
}

void park(commit_fn commit, void* arg, wait_reason why) noexcept {
  machine* m = enter_outermost();
  if (m == nullptr) return park_thread(commit, arg, why);
  m->after.commit = commit;
  wait_and_switch(m, &after_park, arg, why);
}

void ready(goroutine* g) noexcept {
  machine* m = enter();  // first: a waker that is stopped half way would keep the goroutine out of every queue
  gmp::transition(*g, status::waiting, status::runnable);
  if (g->is_thread) {
    g->thread_note.wake();
  } else if (m == nullptr) {
    ready_from_outside(g);
  } else {
    put_readied(m->p, g);
  }
  if (m != nullptr) leave(m);
}

std::int64_t now_ns() noexcept { return os::now_ns(); }

}  // namespace weft::detail

namespace weft {

void yield() {
  using namespace weft::sched;
  machine* m = enter_simply();
  if (m == nullptr) [[unlikely]] return yield_anyhow();
  goroutine* g = m->curg;
  m->p->counters.yields.bump();
  return m->p->alone && g->own_machine == nullptr ? yield_alone(m, g) : yield_by_queues(m, g);
}

void checkpoint() {
  using namespace weft::sched;
  machine* m = current_machine();
  if (m == nullptr) return;
  // Looking without a section is fine: a wrong answer only means one more or one less look.
  if (m->revoked.load(std::memory_order_relaxed) == gmp::p_attached && m->p != nullptr && !m->p->attention.load(std::memory_order_relaxed)) {
    return;
  }
  leave(enter());
}

}  // namespace weft
