// The life of the runtime: down -> running <-> frozen.
#pragma once

#include "gmp/current.h"
#include "sched/scheduler.h"

namespace weft::sched {

void start_with_defaults();

// Another number of Ps, while everything runs. Returns the number before; 0 if nothing runs. In a blocking call or on a
// plain thread.
int change_procs(int procs);
// The same, unless somebody has asked for a number meanwhile.
void change_procs_if_following(int procs);
bool is_following() noexcept;

// go() from a plain thread, and whatever else needs the runtime there. Not for a goroutine: if the runtime is frozen, that one has been
// in its own code since, and is to freeze at its next section, and wake nobody.
inline void ensure_started() {
  if (gmp::current_machine() != nullptr) return;
  if (sched.life.load(std::memory_order_acquire) != phase::running) [[unlikely]] start_with_defaults();
}

// For what needs the runtime's poller and no goroutine: so that those that are frozen stay so.
inline void ensure_poller() {
  if (sched.life.load(std::memory_order_acquire) == phase::down) [[unlikely]] start_with_defaults();
}

// Calls f with the world stopped, in whatever phase of its life the runtime is, and lets it go on. From a plain thread.
void with_world_stopped(void (*f)(void*) noexcept, void* argument);

}  // namespace weft::sched
