#include <weft/runtime.h>

#include "os/cpu_count.h"
#include "poll/descriptor.h"
#include "sched/scheduler.h"
#include "sched/stack.h"

namespace weft::runtime {
namespace {

using gmp::processor;
using gmp::processor_counters;
using sched::sched;

// Every P that ever existed: a P that is gone keeps its counters.
template <class Visit>
void for_each_processor(Visit&& visit) {
  for (const auto& slot : sched.all_ps) {
    const processor* p = slot.load(std::memory_order_acquire);
    if (p == nullptr) return;
    visit(*p);
  }
}

std::uint64_t sum(base::counter processor_counters::* member) {
  std::uint64_t total = 0;
  for_each_processor([&](const processor& p) { total += (p.counters.*member).read(); });
  return total;
}

std::uint64_t count_locked_threads() {
  std::uint64_t n = 0;
  for (const gmp::machine* m = sched.all_ms.load(std::memory_order_acquire); m != nullptr; m = m->all_link) n += m->locked_g != nullptr;
  return n;
}

}  // namespace

int num_cpu() { return os::affinity_cpus(); }

std::size_t num_goroutine() {
  // The ends first: a goroutine that comes and goes meanwhile must not make the difference negative.
  const std::uint64_t finished = sum(&processor_counters::finished);
  return sched.created_outside.load(std::memory_order_relaxed) + sum(&processor_counters::created) - finished;
}

std::size_t num_thread() { return static_cast<std::size_t>(sched.threads.load(std::memory_order_relaxed)); }

sched_stats read_sched_stats() {
  using c = processor_counters;
  sched_stats s;
  s.goroutines_finished = sum(&c::finished);
  s.goroutines_created = sched.created_outside.load(std::memory_order_relaxed) + sum(&c::created);
  s.goroutines = s.goroutines_created - s.goroutines_finished;
  s.parks = sum(&c::parks);
  s.readied = sum(&c::readied) + sched.readied_outside.load(std::memory_order_relaxed);
  s.yields = sum(&c::yields);
  s.switches_via_g0 = sum(&c::switches_via_g0);
  for_each_processor([&](const processor& p) {
    const std::uint64_t short_yields = p.all_short_yields();
    s.yields += short_yields;
    s.picks += p.all_picks() + short_yields;
  });
  s.stacks_bound = sum(&c::stacks_bound);
  s.stacks_inherited = sum(&c::stacks_inherited);
  s.joined_in_place = sum(&c::joined_in_place);
  s.depth_first = sum(&c::depth_first);
  const auto stacks = weft::sched::read_stack_stats();
  s.stacks_total = stacks.total;
  s.stacks_pooled = stacks.pooled;
  s.stacks_returned = stacks.returned;
  s.overflows = sum(&c::overflows);
  s.global_batches = sum(&c::global_batches);
  s.global_taken = sum(&c::global_taken);
  s.global_ticks = sum(&c::global_ticks);
  s.steal_attempts = sum(&c::steal_attempts);
  s.steals = sum(&c::steals);
  s.stolen = sum(&c::stolen);
  s.runnext_steals = sum(&c::runnext_steals);
  s.runnext_spared = sum(&c::runnext_spared);
  s.steals_put_off = sum(&c::steals_put_off);
  s.spins = sum(&c::spins);
  s.wakeups = sched.machine_wakeups.load(std::memory_order_relaxed);
  s.sleeps = sched.idle_sleeps.load(std::memory_order_relaxed);
  s.futile_wakes = sched.futile_wakes.load(std::memory_order_relaxed);
  s.thread_moves = sched.moves.load(std::memory_order_relaxed);
  s.missed_wakes = sched.missed_wakes.load(std::memory_order_relaxed);
  s.slices_ended = sched.slices_ended.load(std::memory_order_relaxed);
  s.preempted = sum(&c::preempted_slices);
  s.backlog_preemptions = sum(&c::backlog_preemptions);
  s.preempted_running = sched.revoked_running.load(std::memory_order_relaxed);
  s.preempted_blocked = sched.revoked_blocked.load(std::memory_order_relaxed);
  s.preempt_signals = sched.preempt_signals.load(std::memory_order_relaxed);
  s.stops_in_place = sched.stops_in_place.load(std::memory_order_relaxed);
  s.rotations = sched.rotations.load(std::memory_order_relaxed);
  s.stopped_in_place = static_cast<std::uint64_t>(sched.stopped_in_place.load(std::memory_order_relaxed));
  s.loose = static_cast<std::uint64_t>(sched.loose.load(std::memory_order_relaxed));
  for_each_processor([&](const processor& p) { s.blocking_calls += p.calls.load(std::memory_order_relaxed); });
  s.blocking_retaken = sum(&c::calls_retaken);
  s.blocking_handed_over = sum(&c::calls_handed_over);
  s.handoffs = sched.handoffs.load(std::memory_order_relaxed);
  s.timers_started = sum(&c::timers_started);
  s.timers_run = sum(&c::timers_run);
  s.timers_stolen = sum(&c::timers_stolen);
  s.homes_given = sum(&c::homes_given);
  s.homes_left = sum(&c::homes_left);
  s.locked_turns = sum(&c::locked_turns);
  s.netpolls = sched.polls.load(std::memory_order_relaxed);
  s.netpoll_waits = sched.poll_waits.load(std::memory_order_relaxed);
  s.netpolls_by_sysmon = sched.poll_by_sysmon.load(std::memory_order_relaxed);
  s.netpoll_events = sched.poll_events.load(std::memory_order_relaxed);
  s.netpoll_readied = sched.poll_readied.load(std::memory_order_relaxed);
  s.redistributed = sched.redistributed.load(std::memory_order_relaxed);
  s.world_stops = sched.world_stops.load(std::memory_order_relaxed);
  s.global_queue = sched.global_size.load(std::memory_order_relaxed);
  s.io_waiting = poll::waiter_count();
  s.procs = max_procs();
  s.idle_procs = sched.idle_ps.load(std::memory_order_relaxed);
  s.spinning_threads = sched.spinning.load(std::memory_order_relaxed);
  s.threads = num_thread();
  s.threads_created = sched.threads_created.load(std::memory_order_relaxed);
  s.locked_threads = count_locked_threads();
  s.sysmon_rounds = sched.sysmon_rounds.load(std::memory_order_relaxed);
  return s;
}

}  // namespace weft::runtime
