// The life of the runtime: down -> running <-> frozen.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

void start_with_defaults();

// go() from a plain thread.
inline void ensure_started() {
  if (sched.life.load(std::memory_order_acquire) != phase::running) [[unlikely]] start_with_defaults();
}

}  // namespace weft::sched
