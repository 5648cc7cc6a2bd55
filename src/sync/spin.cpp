#include "sync/spin.h"

#include "base/pause.h"
#include "os/cpu_count.h"
#include "sched/section.h"

namespace weft::detail {

namespace {

bool many_cpus() noexcept {
  static const bool many = os::affinity_cpus() > 1;
  return many;
}

bool other_ps_run() noexcept {
  using sched::sched;
  return sched.procs.load(std::memory_order_acquire) - 1 - sched.idle_ps.load(std::memory_order_relaxed) -
             sched.spinning.load(std::memory_order_relaxed) >
         0;
}

}  // namespace

bool spinning_may_help() noexcept {
  gmp::machine* m = sched::enter();
  if (m == nullptr) return many_cpus();
  const bool helps = other_ps_run() && !m->p->has_work();
  sched::leave(m);
  return helps;
}

bool others_run() noexcept { return gmp::current_machine() == nullptr ? many_cpus() : other_ps_run(); }

void spin_one_round() noexcept {
  for (int i = 0; i < pauses_per_round; ++i) base::cpu_pause();
}

}  // namespace weft::detail
