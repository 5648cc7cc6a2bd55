#include "sync/spin.h"

#include "base/pause.h"
#include "os/cpu_count.h"
#include "sched/section.h"

namespace weft::detail {

bool spinning_may_help() noexcept {
  using sched::sched;
  gmp::machine* m = weft::sched::enter();
  if (m == nullptr) {
    static const bool many_cpus = os::affinity_cpus() > 1;
    return many_cpus;
  }
  const int others = sched.procs.load(std::memory_order_acquire) - 1 - sched.idle_ps.load(std::memory_order_relaxed) -
                     sched.spinning.load(std::memory_order_relaxed);
  const bool helps = others > 0 && !m->p->has_work();
  weft::sched::leave(m);
  return helps;
}

void spin_one_round() noexcept {
  for (int i = 0; i < pauses_per_round; ++i) base::cpu_pause();
}

}  // namespace weft::detail
