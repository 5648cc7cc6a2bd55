// Goroutines park, are readied, and yield. The public half is <weft/detail/park.h>.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// The running goroutine goes to the back of the global queue. Returns, once it runs again, the M that it is on.
machine* move_to_global(machine* m, goroutine* g) noexcept;

// This thread's stand-in goroutine.
goroutine* thread_stand_in() noexcept;

}  // namespace weft::sched
