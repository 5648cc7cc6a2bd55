#include "sched/loop.h"

#include "sched/find_work.h"
#include "sched/idle.h"
#include "sched/spawn.h"
#include "sched/switch.h"

namespace weft::sched {

void schedule_forever(machine* m) noexcept {
  for (;;) {
    if (m->p == nullptr) sleep_machine(m);  // its goroutine gave up its P, or never got one back
    runnable* r = std::exchange(m->handoff, nullptr);
    if (r == nullptr) r = find_work(m);
    if (m->spinning) stop_spinning_with_work(m);
    switch_from_g0(m, goroutine_of(m->p, r));
  }
}

}  // namespace weft::sched
