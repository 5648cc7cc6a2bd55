// The order of the sources: stop request, own timers (but once after who stands in runnext), every 61st time the global
// queue, the queues if they had no turn for some slices, runnext, own ring, the global queue (a fair share), the network
// without waiting, stealing, then under the lock what is shared once more, then the P goes idle, every queue is looked at
// once more, and the M sleeps: one of them in the poller, until the next timer.
#include "sched/find_work.h"

#include "base/delay.h"
#include "base/pause.h"
#include "os/clock.h"
#include "sched/idle.h"
#include "sched/netpoll.h"
#include "sched/placement.h"
#include "sched/queues.h"
#include "sched/revoke.h"
#include "sched/steal.h"
#include "sched/thrift.h"
#include "sched/timers.h"
#include "sched/world.h"

namespace weft::sched {
namespace {

// How long an M that found nothing keeps looking before it sleeps. Waking it again costs the waker a system call and
// the work a few tens of microseconds.
constexpr std::int64_t spin_ns = 20'000;
constexpr std::int64_t spin_interval_ns = 2'000;
constexpr std::int64_t a_moment_ns = 5'000;

runnable* of_queue(processor* p, runnable* r) noexcept {
  p->begin_slice_of_queue();
  return r;
}

// The slice that was shared through runnext is over: who stands there queues up like everybody else.
void end_slice(processor* p) noexcept {
  p->attention.store(false, std::memory_order_relaxed);
  if (runnable* r = take_runnext(p)) {
    put_last(p, r);
    wake_after_put_last();
  }
}

bool run_own_timers(processor* p, std::int64_t& now) noexcept {
  if (!is_timer_due(p, now) || put_off_timers(p)) return false;
  p->timers_put_off = false;
  return run_timers(p, now);
}

runnable* from_global_on_tick(processor* p) noexcept {
  const std::uint32_t picks = p->picks.load(std::memory_order_relaxed) + 1;
  p->picks.store(picks, std::memory_order_relaxed);
  p->picks_noted.note(picks);
  if (choice_at(p, picks) % fairness_ticks != 0 || sched.global_size.load(std::memory_order_relaxed) == 0) return nullptr;
  base::lock_guard guard(sched.lock);
  runnable* r = take_global_one(p);
  if (r != nullptr) p->counters.global_ticks.bump();
  return r;
}

// Now and then; and when somebody has lost this P for the sake of who waits for a socket that is ready, but not before the one that a
// timer has just readied.
void poll_network_in_turn(processor* p) noexcept {
  const bool wanted = p->poll_first.load(std::memory_order_relaxed) && p->runnext.load(std::memory_order_relaxed) == nullptr;
  if (wanted) p->poll_first.store(false, std::memory_order_relaxed);
  if (wanted || choice_at(p, p->picks.load(std::memory_order_relaxed)) % network_ticks == 0) poll_network(p);
}

runnable* from_ring(processor* p) noexcept { return p->ring.pop(); }

runnable* from_global(processor* p) noexcept {
  if (sched.global_size.load(std::memory_order_relaxed) == 0) return nullptr;
  base::lock_guard guard(sched.lock);
  return take_global_batch(p);
}

// Whom a timer or a socket readies goes to runnext, before the ring. Three goroutines that nap for less time than they compute would
// so keep a P to themselves for ever: at each choice another one's nap is over, also at the end of a slice. Not at the first
// end: beside goroutines that only compute, somebody whose time has come goes first.
runnable* from_queues_if_overdue(processor* p) noexcept {
  constexpr std::uint32_t slices = 3;
  if (p->slices_since_queue_turn() < slices) [[likely]] return nullptr;
  if (runnable* r = from_global(p)) put_last(p, r);
  return from_ring(p);
}

// Spinners are at most half of the busy Ps.
bool may_spin(const machine* m) noexcept {
  if (m->spinning) return true;
  const std::int32_t busy = sched.procs.load(std::memory_order_acquire) - sched.idle_ps.load(std::memory_order_relaxed);
  return 2 * sched.spinning.load(std::memory_order_relaxed) < busy;
}

// As any_work(), but a runnext alone is not reason enough to look again at once.
bool any_queued_work() noexcept {
  if (sched.global_size.load(std::memory_order_seq_cst) != 0) return true;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    if (!processor_at(i)->ring.empty()) return true;
  }
  return false;
}

// Not after a goroutine that waits for a descriptor: what comes next most likely comes from outside, maybe from a process that
// needs this core. Nor if the next timer of this P is due in a moment: that is its next work, and where there are so many timers
// they are run in batches, and a thread that sleeps between them costs less.
bool is_worth_looking(const processor* p, std::int64_t now) noexcept {
  if (p->last_wait == detail::wait_reason::io_wait) return false;
  const std::int64_t next = p->timers.next_when();
  return (next == 0 || next - now >= a_moment_ns) && may_look(now);
}

// Steals, and if there is nothing to steal keeps an eye on the queues for a moment. Looking is not free for the others:
// each look pulls their cache lines over, so it is done at intervals.
runnable* steal_or_spin(machine* m, bool& spared) noexcept {
  if (!m->spinning) become_spinning(m);
  const std::int64_t began = os::now_ns();
  if (m->works_since != 0) {
    worked(began - m->works_since);
    m->hauls.ran_dry(began - m->works_since);
  }
  m->works_since = began;
  const std::int64_t patience = is_worth_looking(m->p, began) ? spin_ns : 0;
  for (std::int64_t now = began;;) {
    const bool last_look = now - began >= patience;
    const steal_result s = steal(m, last_look ? gmp::hauls::most_patience_ns : now - began);
    if (s.found != nullptr) return s.found;
    spared |= s.spared;
    now = os::now_ns();
    if (sched.stopping.load(std::memory_order_relaxed) || last_look) {
      looked_in_vain(now - began);
      return nullptr;
    }
    m->works_since = now;
    const std::int64_t next_look = now + spin_interval_ns;
    while (now < next_look) {
      for (int i = 0; i < 16; ++i) base::cpu_pause();
      now = os::now_ns();
    }
    if (runnable* r = from_global(m->p)) return r;
  }
}

// The last look under the lock, and the P goes idle. Null with m->p set: look again from the start; null with m->p null:
// nothing anywhere.
runnable* go_idle(machine* m) noexcept {
  base::lock_guard guard(sched.lock);
  if (sched.stopping.load(std::memory_order_relaxed)) return nullptr;
  if (runnable* r = take_global_batch(m->p)) return r;
  if (!m->spinning && sched.need_spinning.load(std::memory_order_seq_cst)) {
    become_spinning(m);
    return nullptr;
  }
  begin_retiring(m);
  release_to_idle(m);
  return nullptr;
}

// Something appeared between the last look and the sleep.
bool come_back(machine* m) noexcept {
  if (!regain(m)) return false;
  if (!m->spinning) become_spinning(m);
  return true;
}

// One M sleeps in the poller. If it comes back for goroutines, it has what it needs and looks for nothing; if for a
// timer, it is a spinner like any that was woken for work. True: it has a P.
bool sleep_in_poller(machine* m) noexcept {
  poll::events found;
  switch (wait_for_events(m, found)) {
    case waited::not_at_all:
      return false;
    case waited::called_away:
      return true;
    case waited::in_poller:
      m->hauls = {};  // whatever it comes back for is something else
      break;
  }
  if (found.ready.empty()) return m->back_for_timer = come_back(m);
  regain(m);
  ready_all(found.ready, m->p);
  if (m->p == nullptr) return false;
  if (sched.poller_stays_away.load(std::memory_order_relaxed)) wake_processor();
  return true;
}

// `spared`: the only work in sight were runnexts that their Ps keep consuming. Then a runnext alone does not keep this
// M awake, and for a while nobody is woken for one; sysmon watches that none is left standing.
void sleep_unless_work_appeared(machine* m, bool spared) noexcept {
  if (m->spinning) {
    if (spared) {
      sched.futile.store(true, std::memory_order_seq_cst);
      sched.futile_wakes.fetch_add(1, std::memory_order_relaxed);
    }
    base::delay();
    end_spinning(m);
  }
  base::delay();
  // Submitters publish with a read-modify-write of runnext; whom that displaces goes to the ring with a plain store. So who
  // does not look at runnexts must make the stores visible first.
  const bool leave_runnexts = spared && barrier_everywhere();
  if ((leave_runnexts ? any_queued_work() : any_work()) && come_back(m)) return;
  if (sleep_in_poller(m)) return;
  sleep_machine(m);
}

}  // namespace

bool any_work() noexcept {
  if (sched.global_size.load(std::memory_order_seq_cst) != 0) return true;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    if (processor_at(i)->has_work()) return true;
  }
  return false;
}

runnable* find_work(machine* m) noexcept {
  for (;;) {
    processor* p = m->p;
    if (sched.stopping.load(std::memory_order_acquire)) {
      stop_for_world(m);
      continue;
    }
    const bool slice_is_over = p->attention.load(std::memory_order_relaxed);
    if (slice_is_over) end_slice(p);
    if (p->crowded.load(std::memory_order_relaxed)) leave_crowd(p);
    std::int64_t now = 0;
    const bool timers_ran = run_own_timers(p, now);
    // Not before those whose time has come: it may be for them that the P was taken from the one that is next there.
    if (!timers_ran) {
      if (runnable* r = from_global_on_tick(p)) return of_queue(p, r);
    }
    poll_network_in_turn(p);
    if (runnable* r = from_queues_if_overdue(p)) return of_queue(p, r);
    // Inherits the slice; but one that a timer or a socket has just readied does not inherit one that is over.
    if (runnable* r = take_runnext(p)) {
      if (slice_is_over) p->begin_slice();
      return r;
    }
    if (runnable* r = from_ring(p)) return of_queue(p, r);
    if (runnable* r = from_global(p)) return of_queue(p, r);
    p->note_queue_turn();
    if (poll_network(p)) continue;
    bool spared = false;
    if (may_spin(m)) {
      if (runnable* r = steal_or_spin(m, spared)) return of_queue(p, r);
    }
    p->timers.unlist_if_empty();
    if (runnable* r = go_idle(m)) return of_queue(p, r);
    if (m->p == nullptr) {
      sleep_unless_work_appeared(m, spared);
      m->works_since = os::now_ns();
    }
  }
}

}  // namespace weft::sched
