#include "sched/loop.h"

#include <utility>

#include "sched/find_work.h"
#include "sched/idle.h"
#include "sched/locked.h"
#include "sched/placement.h"
#include "sched/preempt.h"
#include "sched/spawn.h"
#include "sched/switch.h"

namespace weft::sched {
namespace {

// Whether only another M may run it.
bool belongs_elsewhere(const runnable* r) noexcept {
  return !is_record(r) && static_cast<const goroutine*>(r)->own_machine != nullptr;
}

// The P goes to the M that the goroutine belongs to.
void send_home(machine* m, goroutine* g) noexcept {
  begin_retiring(m);
  g->own_machine->placed.store(true, std::memory_order_relaxed);
  machine* home = hand_to_own_machine(g, std::exchange(m->p, nullptr));
  send_to_core(core_of_thread(m), home);
  home->park.wake();
}

}  // namespace

void schedule_until_end(machine* m) noexcept {
  while (!m->ends) {
    if (m->locked_g != nullptr) {
      serve_locked(m);
      continue;
    }
    if (m->p == nullptr) sleep_machine(m);  // its goroutine gave up its P, or never got one back
    runnable* r = std::exchange(m->handoff, nullptr);
    if (r == nullptr) r = find_work(m);
    if (m->spinning) stop_spinning_with_work(m);
    if (belongs_elsewhere(r)) {
      send_home(m, static_cast<goroutine*>(r));
    } else {
      switch_from_g0(m, goroutine_of(m->p, r));
    }
  }
  give_up_processor(m);
}

}  // namespace weft::sched
