// Stopping and starting the world, and changing the number of Ps, which is possible only in between.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Returns when no M can run the scheduler: every P is held by the caller. Goroutines in user code go on until their next
// call into weft. The caller is a plain thread and holds the lifecycle lock: one stop at a time.
void stop_world() noexcept;

// Gives the world `procs` Ps and lets it go.
void start_world(int procs) noexcept;

// A P for who stops the world. The caller owns it.
void hand_in(processor* p) noexcept WEFT_REQUIRES(sched.lock);

// The P's goroutines go to the global queue. The caller owns it, or the world is stopped.
void drain_to_global(processor* p) noexcept WEFT_REQUIRES(sched.lock);

// On g0, stop requested: hands the P in and sleeps. Returns with a P.
void stop_for_world(machine* m) noexcept;

}  // namespace weft::sched
