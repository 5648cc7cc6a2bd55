#include "sched/placement.h"

#include "os/affinity.h"
#include "sched/scheduler.h"

namespace weft::sched {
namespace {

// Of the M that owns P i and runs; null if there is none. The lock keeps it from giving up the P, and its thread from ending.
const machine* running_machine(int i) noexcept WEFT_REQUIRES(sched.lock) {
  const processor* p = processor_at(i);
  if (p->state.load(std::memory_order_acquire) != processor_state::running) return nullptr;
  const machine* m = p->owner.load(std::memory_order_acquire);
  return m != nullptr && m->cpu_word != nullptr ? m : nullptr;
}

struct crowding {
  os::cpu_mask taken{};
  const machine* second = nullptr;  // on a core of another
};

crowding look() noexcept WEFT_REQUIRES(sched.lock) {
  crowding c;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    const machine* m = running_machine(i);
    if (m == nullptr) continue;
    const auto cpu = static_cast<int>(__atomic_load_n(m->cpu_word, __ATOMIC_RELAXED));
    if (os::contains(c.taken, cpu)) c.second = m;
    os::add(c.taken, cpu);
  }
  return c;
}

}  // namespace

void spread_machines() noexcept {
  base::lock_guard guard(sched.lock);
  if (sched.stopping.load(std::memory_order_relaxed)) return;
  const crowding c = look();
  if (c.second != nullptr && os::move_off(c.second->tid, c.taken)) sched.moves.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace weft::sched
