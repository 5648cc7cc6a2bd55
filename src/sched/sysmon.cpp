#include "sched/sysmon.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "os/clock.h"
#include "sched/idle.h"
#include "sched/last_words.h"
#include "sched/lifecycle.h"
#include "sched/netpoll.h"
#include "sched/placement.h"
#include "sched/preempt.h"
#include "sched/queues.h"
#include "sched/revoke.h"
#include "sched/schedtrace.h"
#include "sched/slices.h"
#include "sched/stack.h"
#include "sched/syscall.h"
#include "sched/threads.h"
#include "sched/timers.h"

namespace weft::sched {
namespace {

constexpr std::int64_t shortest_nap = 20'000;
constexpr std::int64_t longest_nap = 10'000'000;
constexpr std::int64_t watch_nap = 200'000;   // while nobody is woken for a lone runnext, or the poller seems deserted
constexpr std::int64_t poller_nap = 1'000'000;  // while a P is idle and nobody waits in the poller
constexpr std::uint32_t naps_before_backoff = 50;
constexpr int naps_before_sleep = 20;           // with nothing running
constexpr std::int64_t longest_idle_nap = 1'000'000;
constexpr std::int64_t poll_every = 10'000'000;
constexpr std::int64_t busy_nap = 1'000'000;     // at most, while all Ps are busy and timers or goroutines wait
constexpr std::int64_t patient_nap = 2'500'000;      // the same where neither timers nor sockets are waited for
constexpr std::int64_t patience = 20'000'000;    // with the factory, before the last spare M is used
constexpr std::int64_t starving_is_noticed = 1'000'000'000;  // that nothing is chosen, for want of threads
constexpr std::int64_t starving_is_fatal = 30'000'000'000;  // where those that have the threads compute, and may come to an end
constexpr std::int64_t longest_gap = 100'000'000;
constexpr std::int64_t loose_every = 5'000'000;
constexpr std::int64_t placement_every = 200'000;
constexpr std::int64_t limits_every = 1'000'000'000;
constexpr std::int64_t scavenge_every = 1'000'000'000;

struct watch {
  std::int64_t nap = shortest_nap;
  std::uint32_t quiet = 0;       // naps in a row without anything to do
  std::int64_t scavenged = 0;
  bool global_left = false;      // the global queue had something although a P was idle
  int futile_left = 0;           // naps until waking for a lone runnext is tried again
  int futile_span = 1;
  int futile_rest = 0;           // naps without it until the span is forgotten
  std::uint64_t seen_polls = 0;  // how often somebody had polled, and since when it is so many
  std::int64_t seen_polls_when = 0;
  bool poller_missing = false;   // at the last look, with an idle P
  bool poller_deserted = false;  // and nobody had been there since the look before
  int idle_naps = 0;             // in a row
  slices running;                // who runs, and when to look at them again
  std::int64_t next_event = 0;
  std::int64_t looked_at_threads = 0;
  std::uint64_t starving_choices = 0; // of all Ps when somebody began to wait in vain for want of threads,
  std::int64_t starving_since = 0;    // when that was, 0: nobody does,
  bool starving_by_calls = false;     // and whether some that have threads sleep in the kernel all the while
  std::int64_t looked_at_loose = 0;
  std::int64_t looked_at_limits = 0;
  std::int64_t looked_at_placement = 0;
};

bool everything_idle() noexcept {
  return sched.stopping.load(std::memory_order_relaxed) ||
         sched.idle_ps.load(std::memory_order_relaxed) == sched.procs.load(std::memory_order_acquire);
}

// Whether goroutines or timers wait for this P although its call goes on and on: a shortage of threads that will not pass
// by itself.
bool is_missed(const processor* p, std::int64_t now) noexcept {
  if (now - p->seen_call_when < patience || sched.spinning.load(std::memory_order_relaxed) != 0) return false;
  const std::int64_t due = p->timers.next_when();
  return p->has_work() || sched.global_size.load(std::memory_order_relaxed) != 0 || (due != 0 && due <= now);
}

// With an M at hand for it; else one is asked for, and the next nap is another chance.
bool retake(processor* p, goroutine* g, std::int64_t now) noexcept {
  machine* woken = nullptr;
  {
    base::lock_guard guard(sched.lock);
    if (sched.stopping.load(std::memory_order_relaxed)) return false;
    if (sched.idle_ms == 0) ask_for_successors(p);
    if (sched.idle_ms == 0 && sched.stopped_first == nullptr) {
      if (is_missed(p, now)) insist_on_successor();
      return true;
    }
    processor* taken = take_from_call(g);
    if (taken == nullptr) return true;
    woken = pass_on(taken);
  }
  finish_hand_off(woken);
  return true;
}

void watch_loose(watch& w, std::int64_t now) noexcept {
  if (sched.loose.load(std::memory_order_relaxed) <= 0 || now - w.looked_at_loose < loose_every || !may_preempt()) return;
  w.looked_at_loose = now;
  stop_loose();
}

// Ps whose goroutines have been in the same blocking call for a nap go to other Ms; but where there is nothing to run
// and others look for work anyway, a P may as well stay for longer.
bool retake_from_calls(std::int64_t now) noexcept {
  bool any = false;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    goroutine* g = goroutine_in_call(p);
    if (g == nullptr) continue;
    const std::uint64_t calls = p->calls.load(std::memory_order_relaxed);
    if (calls != p->seen_calls) {
      p->seen_calls = calls;
      p->seen_call_when = now;
      any = true;  // look again soon
      continue;
    }
    const bool others = sched.idle_ps.load(std::memory_order_relaxed) + sched.spinning.load(std::memory_order_relaxed) > 0;
    if (!p->has_work() && others && now - p->seen_call_when < longest_nap) continue;
    any |= retake(p, g, now);
  }
  return any;
}

bool any_processor_has_work() noexcept {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    if (processor_at(i)->has_work()) return true;
  }
  return false;
}

// Has a goroutine stood in a queue since the last nap, while its P chose nothing?
bool any_processor_is_stuck() noexcept {
  bool stuck = false;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    const std::uint32_t picks = p->picks.load(std::memory_order_relaxed);
    stuck |= picks == p->seen_picks && p->has_work();
    p->seen_picks = picks;
  }
  return stuck;
}

// While `futile` is set, nobody is woken for a goroutine alone in its runnext. It is cleared after some naps, the more
// the more often waking was in vain, or when such a goroutine is left standing; and whoever was submitted while it was
// set is looked for after that. [wake.submit] clear, then look: pairs with the look at `futile` after the publication.
void end_futility(watch& w, bool stuck) noexcept {
  if (!sched.futile.load(std::memory_order_relaxed)) {
    w.futile_left = 0;
    if (w.futile_rest != 0 && --w.futile_rest == 0) w.futile_span = 1;
    return;
  }
  if (w.futile_left == 0) {
    w.futile_left = w.futile_span;
    w.futile_span = std::min(32, w.futile_span * 2);
    w.futile_rest = 64;
  }
  if (--w.futile_left != 0 && !stuck) return;
  w.futile_left = 0;
  sched.futile.store(false, std::memory_order_seq_cst);
  if (any_processor_has_work()) wake_processor();
}

// The last line of defence: a goroutine stands in a queue, its P is busy with another, and a P is idle. However it came
// about, wake somebody.
void rescue(watch& w) noexcept {
  const bool may_help = sched.idle_ps.load(std::memory_order_relaxed) != 0 && !somebody_spins();
  const bool in_global = may_help && sched.global_size.load(std::memory_order_relaxed) != 0;
  const bool waiting = any_processor_is_stuck() || (in_global && w.global_left);
  w.global_left = in_global;  // twice in a row: it was not just put there
  const bool stuck = waiting && may_help;
  if (stuck) {
    sched.missed_wakes.fetch_add(1, std::memory_order_relaxed);
    wake_processor();
    if (sched.owed_spinners.load(std::memory_order_relaxed) != 0) give_idle_processor_to_stopped();
  }
  end_futility(w, stuck);
}

// Idle Ps, and nobody waits in the poller on their behalf: the M that left it last has been busy for a whole nap, or it
// comes to look at the network time and again, but not at the timers of the idle Ps. Or all Ps are busy, and nobody has
// looked at the network for long.
void watch_poller(watch& w, std::int64_t now) noexcept {
  const bool missing = poller_is_missing() && sched.idle_ps.load(std::memory_order_relaxed) != 0 &&
                       sched.spinning.load(std::memory_order_relaxed) == 0;
  const std::uint64_t polls = sched.polls.load(std::memory_order_relaxed) + sched.poll_waits.load(std::memory_order_relaxed);
  const bool nobody_came = polls == w.seen_polls;
  if (!nobody_came) {
    w.seen_polls = polls;
    w.seen_polls_when = now;
  }
  const std::int64_t timer = missing ? next_timer() : 0;
  if (missing && ((w.poller_missing && nobody_came) || (timer != 0 && timer <= now))) wake_processor();
  w.poller_missing = missing;
  w.poller_deserted = missing && nobody_came;
  if (now - w.seen_polls_when < poll_every) return;
  w.seen_polls_when = now;
  poll_for_all();
}

std::uint64_t all_choices() noexcept {
  std::uint64_t n = 0;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) n += processor_at(i)->picks.load(std::memory_order_relaxed) + processor_at(i)->short_yields();
  return n;
}

bool somebody_waits(std::int64_t now) noexcept {
  const std::int64_t timer = next_timer();
  return any_in_global() || (timer != 0 && timer <= now) || any_processor_has_work();
}

// Threads are taken by goroutines that were stopped in place, or that sleep in calls nobody declared, until max_threads allows no
// more: then those that have run already may still take turns, and nobody else does. That must not go on in silence.
void watch_threads(watch& w, std::int64_t now) noexcept {
  const std::int64_t before = std::exchange(w.looked_at_threads, now);
  if (!sched.threads_refused.load(std::memory_order_relaxed) || sched.idle_ps.load(std::memory_order_relaxed) != 0 || somebody_spins()) {
    w.starving_since = 0;
    return;
  }
  const std::uint64_t choices = all_choices();
  const bool by_calls = sched.loose.load(std::memory_order_relaxed) > 0;
  // A gap between two looks: nothing ran, or the machine did something else.
  if (w.starving_since == 0 || choices != w.starving_choices || now - before > longest_gap || !somebody_waits(now)) {
    w.starving_choices = choices;
    w.starving_since = now;
    w.starving_by_calls = by_calls;
    return;
  }
  w.starving_by_calls &= by_calls;
  const std::int64_t starving = now - w.starving_since;
  if (starving >= starving_is_noticed) complain_of_threads(w.starving_by_calls || starving >= starving_is_fatal);
}

void watch_placement(watch& w, std::int64_t now) noexcept {
  const std::int32_t busy = sched.procs.load(std::memory_order_acquire) - sched.idle_ps.load(std::memory_order_relaxed);
  if (busy < 2 || now - w.looked_at_placement < placement_every) return;
  w.looked_at_placement = now;
  find_crowded();
}

void scavenge(watch& w, std::int64_t now) noexcept {
  if (now - w.scavenged < scavenge_every) return;
  w.scavenged = now;
  scavenge_stacks();
}

// Affinity and quota may change while the program runs, and what the kernel counts time by. Reading that allocates, or sleeps: the
// factory does it.
void watch_limits(watch& w, std::int64_t now) noexcept {
  if (now - w.looked_at_limits < limits_every) return;
  w.looked_at_limits = now;
  request_look_at_limits();
}

// Nothing runs. A server that waits for its next request is soon back, and would wake us each time: some more naps come
// before the sleep. False: that was enough of them.
bool doze(watch& w) noexcept {
  w.nap = std::min(w.nap * 2, longest_idle_nap);
  w.next_event = os::now_ns() + longest_nap;
  w.poller_missing = false;
  return ++w.idle_naps < naps_before_sleep;
}

// The runtime is frozen, and plain threads wait at sockets all the same: nobody else polls for them, unless an M was left in the poller.
bool threads_are_left() noexcept {
  return sched.life.load(std::memory_order_acquire) != phase::running && sched.threads_at_sockets.load(std::memory_order_seq_cst) != 0;
}

// Nothing runs: sleep until something does. Stacks that were left warm are still given back, and then nothing at all
// happens any more.
void sleep_while_idle(watch& w) noexcept {
  {
    base::lock_guard guard(sched.lock);
    if (!everything_idle()) return;
    sched.sysmon_asleep = true;
  }
  if (may_be_deadlocked()) request_deadlock_check();
  while (threads_are_left()) {
    if (sched.sysmon_note.sleep_until(os::now_ns() + longest_idle_nap)) return;
    poll_for_all();
  }
  for (int i = 0; i < 2; ++i) {
    if (sched.sysmon_note.sleep_until(os::now_ns() + scavenge_every)) return;
    scavenge_stacks();
  }
  // What keeps this from being a deadlock may come to an end without a sign to us, as a thread does.
  for (std::int64_t nap = scavenge_every; may_be_deadlocked(); nap *= 2) {
    request_deadlock_check();
    if (sched.sysmon_note.sleep_until(os::now_ns() + nap)) return;
  }
  sched.sysmon_note.sleep();
  w.scavenged = os::now_ns();
}

void choose_nap(watch& w, bool busy) noexcept {
  w.quiet = busy ? 0 : w.quiet + 1;
  if (busy) w.nap = shortest_nap;
  if (w.quiet > naps_before_backoff) w.nap = std::min(w.nap * 2, longest_nap);
}

// While goroutines or timers wait and all Ps are busy, nobody but sysmon makes room for them in time.
bool nobody_else_watches() noexcept {
  return sched.idle_ps.load(std::memory_order_relaxed) == 0 && !somebody_spins() &&
         (is_hasty() || sched.global_size.load(std::memory_order_relaxed) != 0 || any_processor_has_work());
}

// With a P idle and others busy: who left the poller, or woke nobody for a goroutine alone in its runnext, counts on being done in
// a moment. If it is not, nobody else sees what waits.
bool is_relied_on(const watch& w) noexcept {
  const std::int32_t idle = sched.idle_ps.load(std::memory_order_relaxed);
  return idle > 0 && idle < sched.procs.load(std::memory_order_acquire) && (is_hasty() || w.futile_rest != 0);
}

std::int64_t next_nap(const watch& w) noexcept {
  if (sched.futile.load(std::memory_order_relaxed)) return watch_nap;
  std::int64_t nap = std::min(w.nap, std::max(w.next_event - os::now_ns(), shortest_nap));
  if (w.poller_missing) nap = std::min(nap, w.poller_deserted ? watch_nap : poller_nap);
  if (is_relied_on(w)) nap = std::min(nap, busy_nap);
  // A loose goroutine may take an idle P any moment, and then all are busy.
  const bool watchful = sched.loose.load(std::memory_order_relaxed) > 0 || nobody_else_watches();
  if (!watchful) return nap;
  return std::min(nap, is_hasty() ? busy_nap : patient_nap);
}

}  // namespace

void wake_sysmon() noexcept {
  sched.coarse_now.store(os::now_ns(), std::memory_order_relaxed);  // it has stood still since sysmon fell asleep
  sched.sysmon_asleep = false;
  sched.sysmon_note.wake();
}

void wake_sysmon_if_asleep() noexcept {
  base::lock_guard guard(sched.lock);
  if (sched.sysmon_asleep) wake_sysmon();
}

void sysmon_loop() noexcept {
  watch w;
  std::optional<os::punctual> on_time;
  for (;;) {
    os::sleep_thread_ns(next_nap(w));
    if (everything_idle() && !tracing_schedule()) {
      if (threads_are_left()) poll_for_all();
      if (doze(w)) continue;
      sleep_while_idle(w);
      w.nap = shortest_nap;
      w.quiet = 0;
    }
    w.idle_naps = 0;
    const std::int64_t now = os::now_ns();
    sched.coarse_now.store(now, std::memory_order_relaxed);
    sched.sysmon_rounds.store(sched.sysmon_rounds.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (tracing_schedule()) {
      trace_schedule(now);
      if (w.quiet % 64 == 63 && everything_idle() && may_be_deadlocked()) request_deadlock_check();  // it never sleeps
    }
    const bool retook = retake_from_calls(now);
    w.next_event = w.running.watch(now);
    if (!w.running.is_hogged()) {
      on_time.reset();
    } else if (!on_time) {
      on_time.emplace();
    }
    watch_loose(w, now);
    rescue(w);
    watch_poller(w, now);
    watch_threads(w, now);
    watch_placement(w, now);
    scavenge(w, now);
    watch_limits(w, now);
    choose_nap(w, retook);
  }
}

}  // namespace weft::sched
