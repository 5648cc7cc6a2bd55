// Goroutines park, are readied, and yield. The public half is <weft/detail/park.h>.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Leaves the running goroutine for the next one; m->after says what happens to it. In a section.
void switch_away(machine* m, goroutine* from) noexcept;

// This thread's stand-in goroutine.
goroutine* thread_stand_in() noexcept;

}  // namespace weft::sched
