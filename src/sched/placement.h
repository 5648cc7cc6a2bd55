// Ms on cores. Two Ms that have Ps may share a core, though another is idle: the kernel notices at its next tick, or some ticks
// later. sysmon looks for such pairs, and one of the two goes elsewhere itself, at its next look around: a thread's set of cores
// is its own matter, which user code may change too.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// sysmon: tells one P of each such pair (processor::crowded); and moves the thread of an M that was woken with a P, and was already
// when sysmon looked last, and has not arrived.
void find_crowded() noexcept;

// The M of that P: moves its thread to a core where no M with a P is, if it is still so and there is one.
void leave_crowd(processor* p) noexcept;

// `to` sleeps, and is the caller's to wake, as the successor of an M that will leave this core in a moment: the kernel would
// put it where it was before, though somebody else runs there, and the other core would be idle. Not if it is locked, nor if there
// are more cores than Ps: then one is free. By sysmon, or with `to->placed` set before it was given its P.
void send_to_core(int core, machine* to) noexcept;

// Where the M's thread is, which must not end meanwhile; -1: the kernel does not say.
int core_of_thread(const machine* m) noexcept;

// On the M that was woken: it may use all its cores again.
void arrived_on_core(machine* m) noexcept;

}  // namespace weft::sched
