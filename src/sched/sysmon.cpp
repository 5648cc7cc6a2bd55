#include "sched/sysmon.h"

#include <algorithm>

#include "os/clock.h"
#include "sched/idle.h"
#include "sched/last_words.h"
#include "sched/schedtrace.h"
#include "sched/stack.h"
#include "sched/syscall.h"

namespace weft::sched {
namespace {

constexpr std::int64_t shortest_nap = 20'000;
constexpr std::int64_t longest_nap = 10'000'000;
constexpr std::int64_t watch_nap = 200'000;   // while nobody is woken for a lone runnext
constexpr int naps_before_backoff = 50;
constexpr std::int64_t slice = 10'000'000;
constexpr std::int64_t scavenge_every = 1'000'000'000;

struct watch {
  std::int64_t nap = shortest_nap;
  int quiet = 0;                 // naps in a row without anything to do
  std::int64_t scavenged = 0;
  int futile_left = 0;           // naps until waking for a lone runnext is tried again
  int futile_span = 1;
  int futile_rest = 0;           // naps without it until the span is forgotten
};

bool everything_idle() noexcept {
  return sched.stopping.load(std::memory_order_relaxed) ||
         sched.idle_ps.load(std::memory_order_relaxed) == sched.procs.load(std::memory_order_acquire);
}

// With an M at hand for it; else one is asked for, and the next nap is another chance.
bool retake(goroutine* g) noexcept {
  machine* woken = nullptr;
  {
    base::lock_guard guard(sched.lock);
    if (sched.stopping.load(std::memory_order_relaxed)) return false;
    if (sched.idle_ms == 0) return true;
    processor* p = take_from_call(g);
    if (p == nullptr) return true;
    woken = hand_off(p);
  }
  finish_hand_off(woken);
  return true;
}

// A goroutine computes on and on without a call into weft, and those behind it wait although the other Ps, busy with
// their own, never come to steal: they go to the global queue, where everybody looks.
void redistribute(processor* p) noexcept {
  std::size_t moved = 0;
  {
    base::lock_guard guard(sched.lock);
    // An only P is taken from without locked instructions, and it has nobody to give to.
    if (sched.procs.load(std::memory_order_acquire) == 1 || sched.stopping.load(std::memory_order_relaxed)) return;
    runnable* batch[processor::ring_size / 2];
    while (const std::uint32_t n = p->ring.grab_half(batch)) {
      for (std::uint32_t i = 0; i < n; ++i) sched.global.push(batch[i]);
      moved += n;
    }
    if (runnable* next = p->runnext.exchange(nullptr, std::memory_order_acq_rel)) {
      sched.global.push(next);
      ++moved;
    }
    sched.global_size.store(sched.global.size(), std::memory_order_release);
  }
  sched.redistributed.fetch_add(moved, std::memory_order_relaxed);
  if (moved != 0) wake_processor();
}

// The goroutines that shared a slice through runnext have had their time: the next choice is a new one.
void end_slices(std::int64_t now) noexcept {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    const std::uint32_t tick = p->sched_tick.load(std::memory_order_relaxed);
    if (tick != p->seen_tick || p->state.load(std::memory_order_relaxed) != processor_state::running) {
      p->seen_tick = tick;
      p->seen_when = now;
    } else if (now - p->seen_when >= slice) {
      p->seen_when = now;
      if (p->attention.load(std::memory_order_relaxed)) redistribute(p);  // it has not come for a whole slice
      p->attention.store(true, std::memory_order_relaxed);
      sched.slices_ended.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

// Ps whose goroutines have been in the same blocking call for a nap go to other Ms; but where there is nothing to run
// and others look for work anyway, a P may as well stay for longer.
bool retake_from_calls(std::int64_t now) noexcept {
  bool any = false;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    const machine* m = p->owner.load(std::memory_order_acquire);
    goroutine* g = m != nullptr ? m->curg.get() : nullptr;
    if (g == nullptr || g->state.load(std::memory_order_acquire) != status::syscall) continue;
    const std::uint32_t calls = p->calls.load(std::memory_order_relaxed);
    if (calls != p->seen_calls) {
      p->seen_calls = calls;
      p->seen_call_when = now;
      any = true;  // look again soon
      continue;
    }
    const bool others = sched.idle_ps.load(std::memory_order_relaxed) + sched.spinning.load(std::memory_order_relaxed) > 0;
    if (!p->has_work() && others && now - p->seen_call_when < longest_nap) continue;
    any |= retake(g);
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
  const bool stuck = any_processor_is_stuck() && sched.idle_ps.load(std::memory_order_relaxed) != 0 &&
                     sched.spinning.load(std::memory_order_relaxed) == 0;
  if (stuck) {
    sched.missed_wakes.fetch_add(1, std::memory_order_relaxed);
    wake_processor();
  }
  end_futility(w, stuck);
}

void scavenge(watch& w, std::int64_t now) noexcept {
  if (now - w.scavenged < scavenge_every) return;
  w.scavenged = now;
  scavenge_stacks();
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

}  // namespace

void wake_sysmon() noexcept {
  sched.coarse_now.store(os::now_ns(), std::memory_order_relaxed);  // it has stood still since sysmon fell asleep
  sched.sysmon_asleep = false;
  sched.sysmon_note.wake();
}

void sysmon_loop() noexcept {
  watch w;
  for (;;) {
    const bool watching = sched.futile.load(std::memory_order_relaxed);
    os::sleep_thread_ns(watching ? watch_nap : w.nap);
    if (everything_idle() && !tracing_schedule()) {
      sleep_while_idle(w);
      w.nap = shortest_nap;
      w.quiet = 0;
    }
    const std::int64_t now = os::now_ns();
    sched.coarse_now.store(now, std::memory_order_relaxed);
    if (tracing_schedule()) {
      trace_schedule(now);
      if (w.quiet % 64 == 63 && everything_idle() && may_be_deadlocked()) request_deadlock_check();  // it never sleeps
    }
    const bool retook = retake_from_calls(now);
    end_slices(now);
    rescue(w);
    scavenge(w, now);
    choose_nap(w, retook);
  }
}

}  // namespace weft::sched
