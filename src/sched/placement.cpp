#include "sched/placement.h"

#include <utility>

#include "gmp/current.h"
#include "os/affinity.h"

namespace weft::sched {
namespace {

constexpr int unknown = -1;

// The core of the M that owns the P and runs goroutines there. With the lock held its thread cannot end: it would have to give
// up the P first.
int core_of(const processor* p) noexcept WEFT_REQUIRES(sched.lock) {
  if (p->state.load(std::memory_order_acquire) != processor_state::running) return unknown;
  const machine* m = p->owner.load(std::memory_order_acquire);
  if (m == nullptr || m->revoked.load(std::memory_order_relaxed) != gmp::p_attached) return unknown;
  return core_of_thread(m);
}

// Calls visit(p, core) for each P whose M runs.
template <class Visit>
void for_each_core(Visit visit) noexcept WEFT_REQUIRES(sched.lock) {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    if (const int core = core_of(p); core != unknown) visit(p, core);
  }
}

}  // namespace

int core_of_thread(const machine* m) noexcept {
  return m->cpu_word != nullptr ? static_cast<int>(__atomic_load_n(m->cpu_word, __ATOMIC_RELAXED)) : unknown;
}

void send_to_core(int core, machine* to) noexcept {
  if (core == unknown || to->locked_g != nullptr) return;
  const int procs = sched.procs.load(std::memory_order_acquire);
  if (core != to->last_cpu) to->kept_off = os::put_on(to->tid, core, procs, to->cpus);
}

void arrived_on_core(machine* m) noexcept {
  if (std::exchange(m->kept_off, false)) os::allow(m->cpus);
  m->placed.store(false, std::memory_order_relaxed);
}

// To whom the P is on its way; null if it is not. Not of Ms that are locked, or whose core somebody chooses: that one restricts the
// M's cores at this very moment, maybe, and two who do that would each put back what the other has left.
static machine* on_its_way_to(const processor* p) noexcept {
  machine* m = p->bound_for.load(std::memory_order_relaxed);
  // acquire: who sees the P there sees `placed` with it
  if (m == nullptr || m->next_p.load(std::memory_order_acquire) != p) return nullptr;
  return m->locked_g != nullptr || m->placed.load(std::memory_order_relaxed) ? nullptr : m;
}

// An M that was woken with a P, has not arrived since the last look, and so stands behind somebody who runs: the kernel may have
// chosen that core though another is idle. Nobody has seen it there, since a thread says where it is only once it runs.
static void send_late_arrivals_elsewhere(const os::cpu_mask& taken) noexcept WEFT_REQUIRES(sched.lock) {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    const machine* m = on_its_way_to(p);
    const machine* seen = std::exchange(p->seen_bound_for, m);
    if (m == nullptr || m != seen) continue;
    const pid_t tid = m->tid;
    if (tid != 0 && os::move_off_if_like_ours(tid, taken)) sched.moves.fetch_add(1, std::memory_order_relaxed);
  }
}

void find_crowded() noexcept {
  base::lock_guard guard(sched.lock);
  os::cpu_mask taken{};
  for_each_core([&](processor* p, int core) {
    if (os::contains(taken, core)) p->crowded.store(true, std::memory_order_relaxed);
    os::add(taken, core);
  });
  send_late_arrivals_elsewhere(taken);
}

void leave_crowd(processor* p) noexcept {
  p->crowded.store(false, std::memory_order_relaxed);
  if (gmp::current_machine()->locked_g != nullptr) return;   // its goroutine may want to be where it is
  if (p->last_wait == detail::wait_reason::io_wait) return;  // who is at the other end may need the other cores
  os::cpu_mask taken{};
  bool still = false;
  {
    base::lock_guard guard(sched.lock);
    const int here = core_of(p);
    for_each_core([&](const processor* other, int core) {
      still |= other != p && core == here;
      os::add(taken, core);
    });
  }
  if (still && os::move_off(0, taken)) sched.moves.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace weft::sched
