#include "sched/locked.h"

#include <cstring>
#include <utility>

#include <weft/go.h>

#include "gmp/current.h"
#include "os/memory.h"
#include "sched/find_work.h"
#include "sched/idle.h"
#include "sched/park.h"
#include "sched/placement.h"
#include "sched/preempt.h"
#include "sched/section.h"
#include "sched/switch.h"
#include "sched/syscall.h"
#include "sched/threads.h"
#include "sched/world.h"

namespace weft::sched {
namespace {

// The M of the thread that calls run(). One for all runs: there is one at a time.
constinit machine* main_machine = nullptr;

machine* home_of(const goroutine* g, machine* here) noexcept { return g->is_main ? main_machine : here; }

void bind_to_thread(goroutine* g, machine* home) noexcept {
  g->own_machine = home;
  home->locked_g = g;
}

void unbind(goroutine* g) noexcept { std::exchange(g->own_machine, nullptr)->locked_g = nullptr; }

}  // namespace

void give_up_processor(machine* m) noexcept {
  if (m->p == nullptr) return;
  machine* woken = nullptr;
  {
    base::lock_guard guard(sched.lock);
    processor* p = std::exchange(m->p, nullptr);
    p->owner.store(nullptr, std::memory_order_relaxed);
    if (sched.stopping.load(std::memory_order_relaxed)) return hand_in(p);
    if (sched.idle_ms != 0 || sched.stopped_first != nullptr) {
      woken = pass_on(p);
    } else {
      drain_to_global(p);
      put_idle_processor(p);
    }
  }
  finish_hand_off(woken);
}

void serve_locked(machine* m) noexcept {
  goroutine* g = m->locked_g;
  give_up_processor(m);
  sleep_with_nothing(m);
  arrived_on_core(m);
  acquire(m, m->take_next_processor());
  m->p->counters.locked_turns.bump();
  switch_from_g0(m, g);
}

void end_locked(machine* m, goroutine* g) noexcept {
  g->lock_depth = 0;
  unbind(g);
  if (m != main_machine) m->ends = true;
}

machine* adopt_main_thread() noexcept {
  if (main_machine == nullptr) main_machine = new_machine();
  adopt_thread(main_machine);
  return main_machine;
}

void serve_main(machine* m, const bool& ended_here) noexcept {
  for (;;) {
    sleep_with_nothing(m);
    processor* p = m->take_next_processor();
    if (p == nullptr) return;  // it ended, on another thread
    gmp::exception_state callers;  // run() may have been called in a catch block
    std::memcpy(&callers, m->thread_exceptions, sizeof callers);
    std::memset(m->thread_exceptions, 0, sizeof callers);
    gmp::set_current_machine(m);
    acquire(m, p);
    p->counters.locked_turns.bump();
    switch_from_g0(m, m->locked_g);
    give_up_processor(m);
    gmp::set_current_machine(nullptr);
    std::memcpy(m->thread_exceptions, &callers, sizeof callers);
    if (ended_here) return;
  }
}

}  // namespace weft::sched

namespace weft {

void lock_os_thread() {
  using namespace weft::sched;
  machine* m = enter();
  if (m == nullptr) return;  // a plain thread is its own
  goroutine* g = m->curg;
  if (g->lock_depth++ == 0) {
    machine* home = home_of(g, m);
    bind_to_thread(g, home);
    if (home != m) m = move_to_global(m, g);  // and from there home
  }
  leave(m);
}

void unlock_os_thread() {
  using namespace weft::sched;
  machine* m = enter();
  if (m == nullptr) return;
  goroutine* g = m->curg;
  if (g->lock_depth != 0 && --g->lock_depth == 0) {
    const bool at_home_of_main = g->own_machine == main_machine;
    unbind(g);
    if (at_home_of_main) m = move_to_global(m, g);  // the main thread runs nothing else
  }
  leave(m);
}

}  // namespace weft
