#include "sched/park.h"

#include <weft/detail/park.h>
#include <weft/go.h>

#include "base/delay.h"
#include "os/clock.h"
#include "sched/finishing.h"
#include "sched/fork.h"
#include "sched/idle.h"
#include "sched/next.h"
#include "sched/parker.h"
#include "sched/queues.h"
#include "sched/section.h"
#include "sched/spawn.h"
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
  note_readied_outside(g);
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

bool parker::is_frozen() const noexcept { return !g_->is_thread && is_world_frozen(); }

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
  const finishing section;  // first: a waker that is stopped half way would keep the goroutine out of every queue
  gmp::transition(*g, status::waiting, status::runnable);
  if (g->is_thread) {
    g->thread_note.wake();
  } else if (machine* m = section.m()) {
    put_readied(m->p, g);
  } else {
    ready_from_outside(g);
  }
}

std::int64_t now_ns() noexcept { return os::now_ns(); }

}  // namespace weft::detail

namespace weft {

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
