// What the kernel says a thread is doing.
#pragma once

#include <sys/types.h>

namespace weft::os {

// Whether the thread sleeps in the kernel. False if it runs, waits for a core, or cannot be asked about. Allocates nothing.
bool is_asleep(pid_t tid) noexcept;

}  // namespace weft::os
