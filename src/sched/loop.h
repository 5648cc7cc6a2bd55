// The loop of an M: find work, run it, again.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

[[noreturn]] void schedule_forever(machine* m) noexcept;

}  // namespace weft::sched
