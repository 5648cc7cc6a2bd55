// Preemption of code that does not call into weft.
//
// A goroutine whose time is up is first asked (processor::attention), and gives way at its next call. If it makes none,
// sysmon takes its P (revoke.h) and hands it to another M. The goroutine runs on without a P for some microseconds,
// until the signal that sysmon sends stops it in place: the handler queues it up and sleeps, on that very thread, exactly
// as if the kernel had descheduled it, whatever lock it may hold. When its turn comes, whoever picks it hands a P to
// its M, and the handler returns.
//
// A signal cuts system calls short. So a thread that sleeps in the kernel is not signalled but left alone, loose;
// sysmon looks after the loose ones from time to time and stops those that run again.
//
// The handler does nothing unless the M is loose and outside of the runtime (locks == 0): then this thread
// holds none of the runtime's locks, and may take sched.lock. It swaps words and uses futexes, nothing else.
//
// Each goroutine that is stopped in place costs a thread, so past a number of them slices grow: a crowd of CPU-bound
// goroutines must not become a crowd of threads. They never become infinite: one may be spinning until another runs.
//
// A stopped goroutine may hold malloc's lock, so no new thread may be needed to let it go on: when the factory does not
// deliver, a P that is taken goes straight to the first of the stopped (a rotation).
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Set from WEFTDEBUG before the first goroutine runs.
struct preempt_settings {
  bool off = false;                        // asyncpreemptoff=1: only ask
  std::int64_t slice_ns = 10'000'000;      // slice=MS
  std::int64_t due_slice_ns = 2'000'000;   // dueslice=MS: for who runs while a timer is due or a socket is ready
  int signal = 0;                          // preemptsignal=N; 0: SIGURG
};
extern preempt_settings preemption;

inline constexpr std::int32_t stop_budget = 32;  // goroutines stopped in place before slices grow

// How long a goroutine may run while others wait.
std::int64_t current_slice() noexcept;

// sysmon: takes the P from the goroutine that has run on it since `tick`, and sees to it that it stops. False if that did
// not happen: it has come into the runtime, or there is no thread to go on with. `asleep`: as sleeps_in_kernel() said.
// `urgent`: it was tried in vain for a while (the factory may itself wait for a lock of a stopped goroutine): a rotation will
// do.
bool preempt(processor* p, std::uint32_t tick, bool asleep, bool urgent) noexcept;

// In the handler of the signal that preempt() and stop_loose() send. Returns when the goroutine may go on.
void stop_in_place(machine* m, const void* signal_context) noexcept;

// sysmon: signals those of the loose that are running. Some of them at each call, in turn.
void stop_loose() noexcept;

// Whether the goroutine on this P sleeps in the kernel, in a call that nobody declared.
bool sleeps_in_kernel(processor* p) noexcept;

// A P that was just taken goes to an idle M, or, if there is none, to the first of those stopped in place. There must be
// one or the other. Returns the M to wake, if any.
machine* pass_on(processor* p) noexcept WEFT_REQUIRES(sched.lock);

// A goroutine that only its own M may run (locked to it, or stopped on it) gets the caller's P. Returns the M to wake.
machine* hand_to_own_machine(goroutine* g, processor* p) noexcept;

// sysmon: a P is idle, and the threads that could serve it may be waiting for what a stopped goroutine holds.
void give_idle_processor_to_stopped() noexcept;

// The world is stopped for the end of run(): the stopped go on, without a P, until their next call into weft, so that
// none of them keeps a lock that the rest of the program needs.
void let_stopped_go() noexcept;

}  // namespace weft::sched
