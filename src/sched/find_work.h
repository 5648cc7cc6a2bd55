// Finding the next goroutine to run.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Never returns without one; sleeps when there is nothing. On g0.
runnable* find_work(machine* m) noexcept;

// [wake.idle] The second look at all queues: after a P went into the idle list and its M no longer counts as spinning.
bool any_work() noexcept;

}  // namespace weft::sched
