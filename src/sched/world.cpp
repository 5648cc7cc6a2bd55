#include "sched/world.h"

#include <climits>
#include <new>
#include <utility>

#include "base/delay.h"
#include "os/clock.h"
#include "os/memory.h"
#include "poll/poller.h"
#include "sched/idle.h"
#include "sched/queues.h"
#include "sched/records.h"
#include "sched/timer_blocks.h"
#include "sched/revoke.h"
#include "sched/stack.h"
#include "sched/steal.h"
#include "sched/syscall.h"
#include "sched/sysmon.h"
#include "sched/timers.h"
#include "sched/tracing.h"
#include "sched/transit.h"

namespace weft::sched {
namespace {

constexpr std::int64_t retry_ns = 200'000;

void take_idle_processors() noexcept WEFT_REQUIRES(sched.lock) {
  while (processor* p = take_idle_processor()) hand_in(p);
}

machine* owner_of(const processor* p) noexcept {
  return p->state.load(std::memory_order_relaxed) == processor_state::running ? p->owner.load(std::memory_order_relaxed) : nullptr;
}

void call_attention() noexcept {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) processor_at(i)->attention.store(true, std::memory_order_relaxed);
}

// Ps whose goroutines are in blocking calls.
void take_from_calls() noexcept WEFT_REQUIRES(sched.lock) {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    const machine* m = owner_of(processor_at(i));
    goroutine* g = m != nullptr ? m->curg.get() : nullptr;
    if (g == nullptr || g->state.load(std::memory_order_acquire) != status::syscall) continue;
    if (processor* p = take_from_call(g)) hand_in(p);  // maybe another P than i: the goroutine may have moved
  }
}

void revoke_running() noexcept WEFT_REQUIRES(sched.lock) {
  if (!can_revoke()) return;  // then the stop waits until they come by themselves
  machine* candidates[max_procs_limit];
  int n = 0;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    machine* m = owner_of(processor_at(i));
    if (m != nullptr && announce_revocation(m)) candidates[n++] = m;
  }
  if (n == 0) return;
  base::delay();
  if (!barrier_everywhere()) [[unlikely]] {
    for (int i = 0; i < n; ++i) withdraw_revocation(candidates[i]);
    return;
  }
  for (int i = 0; i < n; ++i) {
    if (processor* p = complete_revocation(candidates[i])) {
      p->revoked_from = candidates[i];
      hand_in(p);
    }
  }
}

processor* new_processor(int id) noexcept {
  const std::size_t bytes = (sizeof(processor) + os::page_size - 1) & ~(os::page_size - 1);
  auto* p = new (os::map_memory(bytes)) processor;
  p->id = id;
  p->timers.list_in(sched.timer_mask[id / 64], std::uint64_t{1} << (id % 64));
  return p;
}

// World stopped. Ps beyond the new number hand their goroutines and caches over.
void resize(int procs) noexcept WEFT_REQUIRES(sched.lock) {
  const int before = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    if (processor_at(i) == nullptr) sched.all_ps[i].store(new_processor(i), std::memory_order_release);
  }
  for (int i = procs; i < before; ++i) {
    processor* p = processor_at(i);
    drain_to_global(p);
    p->revoked_from = nullptr;
    p->state.store(processor_state::dead, std::memory_order_relaxed);
  }
  victims.reset(static_cast<std::uint32_t>(procs));
  sched.procs.store(procs, std::memory_order_release);  // after the Ps that it counts
}

// Goroutines that ran on through the stop keep their P if it still exists; not one that is in the runtime now, which may be about
// to do without, and to sleep (finishing.h): else it gets any P, or waits for one, when it asks.
void give_back_revoked(int procs) noexcept WEFT_REQUIRES(sched.lock) {
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    machine* m = std::exchange(p->revoked_from, nullptr);
    if (m == nullptr || m->p != p || m->revoked.load(std::memory_order_relaxed) != gmp::p_revoked) continue;
    if (m->locks.load(std::memory_order_relaxed) != 0) continue;
    p->owner.store(m, std::memory_order_release);
    p->state.store(processor_state::running, std::memory_order_relaxed);
    gmp::transition(*m->curg, status::detached, status::running);
    if (is_traced(p)) [[unlikely]] {
      trace_thread(p, m);
      trace_start(p, m->curg);
    }
    no_longer_loose(m, gmp::p_attached);  // [world.give_back] the P is ready to be used
  }
}

}  // namespace

void hand_in(processor* p) noexcept {
  p->owner.store(nullptr, std::memory_order_relaxed);
  p->state.store(processor_state::stopped, std::memory_order_relaxed);
  if (--sched.stop_wait == 0) {
    sched.stopped.store(1, std::memory_order_release);
    base::futex_wake(sched.stopped, INT_MAX);
  }
}

void drain_to_global(processor* p) noexcept {
  while (runnable* r = take_runnext(p)) sched.global.push(r);
  while (runnable* r = p->ring.pop()) sched.global.push(r);
  global_size_changed();
}

void stop_world() noexcept {
  sched.world_stops.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t began = os::now_ns();
  sched.stop_began.store(began, std::memory_order_relaxed);
  trace_world(trace::kind::world_stops);
  {
    base::lock_guard guard(sched.lock);
    const int procs = sched.procs.load(std::memory_order_acquire);
    sched.stopped.store(0, std::memory_order_relaxed);
    sched.stop_wait = procs;
    sched.stopping.store(true, std::memory_order_seq_cst);
    for (int i = 0; i < procs; ++i) processor_at(i)->revoked_from = nullptr;
    take_idle_processors();
  }
  // A goroutine that looked at `attention` just before it was set is in user code now, and an M that ended a slice at
  // that moment has cleared it: try again from time to time.
  for (bool done = false; !done;) {
    {
      base::lock_guard guard(sched.lock);
      call_attention();
      take_idle_processors();
      take_from_calls();
      revoke_running();
      done = sched.stop_wait == 0;
    }
    if (!done) base::futex_wait_until(sched.stopped, 0, os::now_ns() + retry_ns);
  }
  sched.stopping_times.add(os::now_ns() - began);
}

void start_world(int procs) noexcept {
  machine* woken[max_procs_limit];
  int wakes = 0;
  const int before = sched.procs.load(std::memory_order_acquire);
  for (int i = before; i < procs; ++i) {
    if (processor* p = processor_at(i)) p->timers.reopen();
  }
  for (int i = procs; i < before; ++i) {
    flush_stacks(processor_at(i));
    record_pool.flush(processor_at(i)->records);
    timer_block_pool.flush(processor_at(i)->timer_blocks);
    timers::move_all(processor_at(i)->timers, processor_at(0)->timers);
  }
  {
    base::lock_guard guard(sched.lock);
    resize(procs);
    attach_logs();
    trace_world(trace::kind::world_goes);
    for (int i = 0; i < procs; ++i) {
      settle_short_yields(processor_at(i));
      processor_at(i)->alone = procs == 1;
      processor_at(i)->attention.store(false, std::memory_order_relaxed);
      processor_at(i)->begin_slice();  // whoever had been asked to give way must be asked again
    }
    sched.stopping.store(false, std::memory_order_seq_cst);
    give_back_revoked(procs);
    for (int i = procs; i-- > 0;) {
      processor* p = processor_at(i);
      if (p->state.load(std::memory_order_relaxed) == processor_state::running) continue;
      machine* m = p->has_work() ? take_idle_machine() : nullptr;
      if (m == nullptr) {
        drain_to_global(p);
        put_idle_processor(p);
      } else {
        send_on_its_way(p, m);
        woken[wakes++] = m;
      }
    }
    if (sched.sysmon_asleep) wake_sysmon();
  }
  for (int i = 0; i < wakes; ++i) woken[i]->park.wake();
  // What lies between two run()s is no pause.
  if (sched.life.load(std::memory_order_relaxed) == phase::running) {
    sched.pause_times.add(os::now_ns() - sched.stop_began.load(std::memory_order_relaxed));
  }
  // Whoever waits in the poller may have looked for timers while they moved from one P to another.
  if (procs < before && sched.poll_until.load(std::memory_order_seq_cst) != 0) poll::interrupt();
  wake_processor();  // for what was left in any queue, and for the timers
}

void stop_for_world(machine* m) noexcept {
  {
    base::lock_guard guard(sched.lock);
    if (!sched.stopping.load(std::memory_order_relaxed)) return;
    if (m->spinning) end_spinning(m);
    begin_retiring(m);
    hand_in(std::exchange(m->p, nullptr));
  }
  sleep_machine(m);
}

}  // namespace weft::sched
