#include "sched/preempt.h"

#include <algorithm>
#include <utility>

#include <sched.h>

#include "base/delay.h"
#include "os/thread_state.h"
#include "sched/idle.h"
#include "sched/placement.h"
#include "sched/preempt_signal.h"
#include "sched/queues.h"
#include "sched/revoke.h"
#include "sched/stand_still.h"
#include "sched/syscall.h"
#include "sched/threads.h"
#include "sched/tracing.h"
#include "sched/transit.h"

namespace weft::sched {

constinit preempt_settings preemption;

namespace {

// In the handler. True: stopped, and on the list. False: it may go on (a P was free, or the world stops and wants
// nobody to sleep with a lock of the user's).
bool queue_up(machine* m, goroutine* g) noexcept {
  base::lock_guard guard(sched.lock);
  if (m->revoked.load(std::memory_order_relaxed) != gmp::p_revoked) return false;  // given back meanwhile
  if (sched.stopping.load(std::memory_order_relaxed)) return false;
  if (processor* p = take_idle_processor()) {
    acquire(m, p);
    p->begin_slice();
    gmp::transition(*g, status::detached, status::running);
    if (is_traced(p)) [[unlikely]] trace_start(p, g);
    no_longer_loose(m, gmp::p_attached);
    return false;
  }
  gmp::transition(*g, status::detached, status::preempted);
  g->own_machine = m;
  m->last_cpu = ::sched_getcpu();
  no_longer_loose(m, gmp::p_stopped);
  put_stopped(g);
  return true;
}

void no_longer_stopped(goroutine* g, machine* m) noexcept { g->own_machine = g->lock_depth != 0 ? m : nullptr; }

// In the handler, woken: with a P, or let go without one (let_stopped_go() has done the rest, and more may have happened
// since then).
void go_on(machine* m, goroutine* g) noexcept {
  processor* p = m->take_next_processor();
  if (p == nullptr) return;
  no_longer_stopped(g, m);
  acquire(m, p);
  gmp::transition(*g, status::preempted, status::running);
  if (is_traced(p)) [[unlikely]] trace_start(p, g);
  m->revoked.store(gmp::p_attached, std::memory_order_relaxed);
}

void send_stop(machine* m) noexcept {
  sched.preempt_signals.fetch_add(1, std::memory_order_relaxed);
  send_preempt_signal(m, signal_purpose::stop_in_place);
}

// Straight to the first of those stopped in place: it takes no thread.
machine* rotate(processor* p) noexcept WEFT_REQUIRES(sched.lock) {
  sched.rotations.fetch_add(1, std::memory_order_relaxed);
  return hand_to_own_machine(take_stopped(), p);
}

// Whether there is a successor for a P that is to be taken. While goroutines are stopped in place, one M is kept back for
// when nothing else helps, and the factory is asked for another.
bool has_spare() noexcept WEFT_REQUIRES(sched.lock) {
  if (sched.idle_ms >= 2 || (sched.idle_ms == 1 && sched.stopped_first == nullptr)) return true;
  if (sched.stopped_first != nullptr) sched.reserve = 2;
  keep_reserve();
  return false;
}

// A thread that sleeps in the kernel is left alone: the signal would cut its call short.
void stop_if_running(machine* m) noexcept {
  if (m->revoked.load(std::memory_order_relaxed) == gmp::p_revoked && !os::is_asleep(m->tid)) send_stop(m);
}

}  // namespace

machine* pass_on(processor* p) noexcept {
  p->begin_slice();
  if (sched.idle_ms != 0) return hand_off(p);
  return rotate(p);
}

std::int64_t current_slice() noexcept {
  const std::int64_t base = preemption.slice_ns;
  const std::int64_t over = sched.stopped_in_place.load(std::memory_order_relaxed) - stop_budget;
  return over <= 0 ? base : std::min(base + over * base / 10, 10 * base);
}

void stop_in_place(machine* m, const void* context) noexcept {
  if (m->locks.load(std::memory_order_relaxed) != 0) return;  // in the runtime: it will notice by itself
  if (m->revoked.load(std::memory_order_relaxed) != gmp::p_revoked) return;
  m->locks.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // [section.enter]
  goroutine* g = m->curg;
  // Where it stands, for dumps; it goes on by returning from the handler.
  const os::machine_state at = position_in_handler(m, context);
  g->context = {reinterpret_cast<void*>(at.sp), reinterpret_cast<void*>(at.pc), reinterpret_cast<void*>(at.fp)};
  if (queue_up(m, g)) {
    sched.stops_in_place.fetch_add(1, std::memory_order_relaxed);
    base::delay();
    wake_processor();  // [wake.submit] a P may have gone idle meanwhile
    m->park.sleep();
    arrived_on_core(m);
    go_on(m, g);
  }
  m->locks.store(0, std::memory_order_release);  // [section.leave]
}

bool preempt(processor* p, std::uint32_t tick, bool asleep, bool urgent) noexcept {
  machine* stopped = nullptr;
  machine* woken = nullptr;
  int core = 0;
  {
    base::lock_guard guard(sched.lock);
    if (sched.stopping.load(std::memory_order_relaxed)) return false;
    const bool spare = has_spare();
    if (!spare && (!urgent || sched.stopped_first == nullptr)) return false;
    if (p->state.load(std::memory_order_relaxed) != processor_state::running) return false;
    stopped = p->owner.load(std::memory_order_relaxed);
    if (stopped == nullptr || p->slices() != tick) return false;
    if (revoke(stopped) == nullptr) return false;
    core = core_of_thread(stopped);  // without the lock it may get a P back, and end
    p->attention.store(false, std::memory_order_relaxed);  // it was meant for who has just lost the P
    p->begin_slice();  // whoever comes next has one of its own
    woken = spare ? hand_off(p) : rotate(p);
  }
  if (woken != nullptr && !asleep) send_to_core(core, woken);
  if (!asleep) send_stop(stopped);  // first: it should have queued up by the time the others look for work
  finish_hand_off(woken);
  return true;
}

void stop_loose() noexcept {
  static machine* next = nullptr;  // sysmon's
  int looks = 16;                  // each is a look into /proc
  for (std::int32_t left = sched.loose.load(std::memory_order_relaxed); left > 0 && looks > 0; next = next->all_link) {
    if (next == nullptr) next = sched.all_ms.load(std::memory_order_acquire);
    if (next->revoked.load(std::memory_order_relaxed) == gmp::p_revoked) {
      stop_if_running(next);
      --left;
      --looks;
    } else if (next->all_link == nullptr) {
      --left;  // once around: those that are left are not loose any more
    }
  }
}

bool sleeps_in_kernel(processor* p) noexcept {
  const machine* m = p->owner.load(std::memory_order_acquire);
  return m != nullptr && m->locks.load(std::memory_order_relaxed) == 0 && os::is_asleep(m->tid);
}

machine* hand_to_own_machine(goroutine* g, processor* p) noexcept {
  machine* m = g->own_machine;
  p->owner.store(nullptr, std::memory_order_relaxed);
  send_on_its_way(p, m);
  return m;
}

void give_idle_processor_to_stopped() noexcept {
  machine* woken = nullptr;
  {
    base::lock_guard guard(sched.lock);
    if (sched.stopping.load(std::memory_order_relaxed) || sched.stopped_first == nullptr) return;
    processor* p = take_idle_processor();
    if (p == nullptr) return;
    p->begin_slice();
    woken = rotate(p);
  }
  woken->park.wake();
}

void let_stopped_go() noexcept {
  machine* woken = nullptr;  // linked through idle_link, which an M that is not idle does not use
  {
    base::lock_guard guard(sched.lock);
    while (goroutine* g = take_stopped()) {
      machine* m = g->own_machine;
      no_longer_stopped(g, m);
      gmp::transition(*g, status::preempted, status::detached);
      m->revoked.store(gmp::p_revoked, std::memory_order_relaxed);
      sched.loose.fetch_add(1, std::memory_order_relaxed);
      m->idle_link = woken;
      woken = m;
    }
  }
  while (woken != nullptr) {
    machine* m = woken;
    woken = m->idle_link;
    m->park.wake();
  }
}

}  // namespace weft::sched
