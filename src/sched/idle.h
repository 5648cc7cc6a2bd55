// Who sleeps, who spins, who is woken: Ms and Ps that have nothing to do, and the way back.
#pragma once

#include "base/barrier.h"
#include "sched/queues.h"
#include "sched/scheduler.h"
#include "sched/tracing.h"

namespace weft::sched {

// Wakes an idle P with an M that looks for work, if there is a P to wake and nobody looks already. Call after work has
// been published, in a section or on a plain thread.
void wake_processor_slow() noexcept;

[[gnu::always_inline]] inline void wake_processor() noexcept {
  // [wake.submit] the look: pairs with release_to_idle() and the recheck in find_work.cpp
  if (sched.idle_ps.load(std::memory_order_seq_cst) == 0 || sched.spinning.load(std::memory_order_seq_cst) != 0) return;
  wake_processor_slow();
}

// The same after put_last() alone, which publishes with a plain store. [wake.submit]
[[gnu::always_inline]] inline void wake_after_put_last() noexcept {
  base::full_barrier();
  wake_processor();
}

// The same for a goroutine that is alone in its runnext: its P is most likely about to run it, and while waking others
// for that has lately been in vain, sysmon looks after it instead.
[[gnu::always_inline]] inline void wake_processor_for_single() noexcept {
  if (sched.idle_ps.load(std::memory_order_seq_cst) == 0 || sched.spinning.load(std::memory_order_seq_cst) != 0) return;
  if (sched.futile.load(std::memory_order_seq_cst)) return;
  wake_processor_slow();
}

// To the front of this P's queue, and somebody is woken for it if that may help.
[[gnu::always_inline]] inline void submit_next(processor* p, runnable* r) noexcept {
  if (p->alone) {  // there is nobody to wake
    put_next(p, r);
  } else if (put_next(p, r)) {
    wake_processor_for_single();
  } else {
    wake_processor();
  }
}

// A goroutine that waited is runnable now, and about to be queued by the owner of this P: it is counted, and maybe timed.
[[gnu::always_inline]] inline void note_readied(processor* p, goroutine* g) noexcept {
  if (p->counters.readied.bump_and_sample(gmp::timed_every)) [[unlikely]] gmp::begin_timing(*g);
  if (is_traced(p)) [[unlikely]] trace_ready(p, g);
}
// The same by who has no P.
void note_readied_outside(goroutine* g) noexcept;

// In a section: a goroutine that waited, and is runnable now, goes to the front of this P's queue.
[[gnu::always_inline]] inline void put_readied(processor* p, goroutine* g) noexcept {
  note_readied(p, g);
  submit_next(p, g);
}

// Puts a P that nobody owns, and whose queues are empty, into the idle list.
void put_idle_processor(processor* p) noexcept WEFT_REQUIRES(sched.lock);
// The P's owner gives it up.
void release_to_idle(machine* m) noexcept WEFT_REQUIRES(sched.lock);

// Takes a P off the idle list; null if there is none.
processor* take_idle_processor() noexcept WEFT_REQUIRES(sched.lock);

// Takes this P off the idle list, if it is there.
bool take_this_idle_processor(processor* p) noexcept WEFT_REQUIRES(sched.lock);

// M and P become one.
void acquire(machine* m, processor* p) noexcept;

void become_spinning(machine* m) noexcept;
// Whether somebody looks for work, or will for certain: what the factory owes may wait for what a stopped goroutine holds.
inline bool somebody_spins() noexcept {
  return sched.spinning.load(std::memory_order_relaxed) > sched.owed_spinners.load(std::memory_order_relaxed);
}
// It is no spinner any more. Whoever relied on it must be looked after by the caller.
void end_spinning(machine* m) noexcept;
// A spinner found work. If it was the last one, somebody else must look from now on.
void stop_spinning_with_work(machine* m) noexcept;

// On `park`. [machine.asleep] release: whatever the M had is where others find it.
inline void sleep_with_nothing(machine* m) noexcept {
  m->asleep.store(true, std::memory_order_release);
  m->park.sleep();
  m->asleep.store(false, std::memory_order_relaxed);
}

// Sleeps until somebody hands a P to this M, and takes it.
void sleep_machine(machine* m) noexcept;

// An M without a P that looks around before it sleeps (see scheduler::retiring). It ends this by one of the three below.
void begin_retiring(machine* m) noexcept;
// It takes a P again, if there is one.
bool regain(machine* m) noexcept;
// It goes into the poller. False: somebody wanted a spinner, and it is one, with a P.
bool retire_to_poller(machine* m) noexcept;
// (or: sleep_machine)

// On which core the M that is taken should have been last. Where the kernel does not look for an idle core, as between the
// virtual CPUs of some machines, it puts a thread that is woken where that one was before; if somebody runs there, it waits for
// milliseconds, though another core may be idle.
enum class core_wish {
  none,
  here,       // the caller is about to leave it
  elsewhere,  // the caller goes on
};

// Takes an idle M off the list; null if there is none.
machine* take_idle_machine(core_wish wish = core_wish::none) noexcept WEFT_REQUIRES(sched.lock);
// Puts an M that is about to sleep on its note into the idle list.
void put_idle_machine(machine* m) noexcept WEFT_REQUIRES(sched.lock);

}  // namespace weft::sched
