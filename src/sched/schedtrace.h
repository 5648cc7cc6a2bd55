// WEFTDEBUG=schedtrace=MS[,scheddetail=1]: what the scheduler looks like, in Go's form, to stderr. Written by sysmon from
// what it can see without stopping anything: figures of one line may belong to slightly different moments.
#pragma once

#include <cstdint>

#include "sched/debug_settings.h"

namespace weft::sched {

inline bool tracing_schedule() noexcept { return debug.schedtrace_ms != 0; }

// Once a line is due.
void trace_schedule(std::int64_t now) noexcept;

}  // namespace weft::sched
