// The loop of an M: find work, run it, again.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

void schedule_until_end(machine* m) noexcept;

}  // namespace weft::sched
