// What the kernel says a thread is doing.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace weft::os {

// Whether the thread sleeps in the kernel. False if it runs, waits for a core, or cannot be asked about. Allocates nothing.
bool is_asleep(pid_t tid) noexcept;

struct thread_view {
  enum activity : std::uint8_t { unknown, running, asleep } now = unknown;
  std::uintptr_t pc = 0, sp = 0;  // asleep: where in its own code it went into the kernel. 0: this kernel does not tell

  friend bool operator==(const thread_view&, const thread_view&) = default;
};

// A look at a thread of this process that does not disturb it, as a signal would, which cuts some system calls short.
// Allocates nothing.
thread_view look_at_thread(pid_t tid) noexcept;

}  // namespace weft::os
