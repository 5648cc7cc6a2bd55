// Finding the next goroutine to run.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Never returns without one; sleeps when there is nothing. On g0.
runnable* find_work(machine* m) noexcept;

}  // namespace weft::sched
