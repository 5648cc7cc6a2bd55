// Stopping and starting the world, and changing the number of Ps, which is possible only in between.
//
// Taking the P from a goroutine that runs user code (revoke): under sched.lock the revoker sets machine::revoked from
// p_attached to p_revoked for Ms with locks == 0, passes a barrier through every running thread
// (membarrier), and looks at locks again. Either the M's raised `locks` is visible now, and the revoker backs off; or
// the M's next look at `revoked` comes after the barrier and sees p_revoked. Then it queues up for sched.lock.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Once, before the first stop.
void prepare_world() noexcept;

// Every running thread of the process passes a full barrier. False if this kernel does not let us.
bool barrier_everywhere() noexcept;

// Returns when no M can run the scheduler: every P is held by the caller. Goroutines in user code go on until their next
// call into weft. The caller is a plain thread and holds the lifecycle lock: one stop at a time.
void stop_world() noexcept;

// Gives the world `procs` Ps and lets it go.
void start_world(int procs) noexcept;

// On g0, stop requested: hands the P in and sleeps. Returns with a P.
void stop_for_world(machine* m) noexcept;

}  // namespace weft::sched
