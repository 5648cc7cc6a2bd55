// Goroutines park, are readied, and yield. The public half is <weft/detail/park.h>.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// This thread's stand-in goroutine.
goroutine* thread_stand_in() noexcept;

}  // namespace weft::sched
