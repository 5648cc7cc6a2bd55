// Which cores a thread may use.
#pragma once

#include <sys/types.h>

namespace weft::os {

// 1024 CPUs; with more of them the calls below fail, and nothing happens.
struct cpu_mask {
  unsigned long words[16];
};

// Keeps a sleeping thread of this process off one core, if it may use others, so that it wakes up elsewhere; `before` is what it
// could use until now. False: nothing has changed.
bool keep_off(pid_t tid, int cpu, cpu_mask& before) noexcept;

// The calling thread may use these again.
void allow(const cpu_mask& mask) noexcept;

}  // namespace weft::os
