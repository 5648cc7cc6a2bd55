// The life of the runtime: down -> running <-> frozen.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

void start_with_defaults();

// go() from a plain thread.
inline void ensure_started() {
  if (sched.life.load(std::memory_order_acquire) != phase::running) [[unlikely]] start_with_defaults();
}

// Calls f with the world stopped, in whatever phase of its life the runtime is, and lets it go on. From a plain thread.
void with_world_stopped(void (*f)(void*) noexcept, void* argument);

}  // namespace weft::sched
