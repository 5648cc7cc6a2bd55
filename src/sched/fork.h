// After a fork the child has one thread and none of the runtime's. It may exec; any other use of weft is a fatal error.
#pragma once

namespace weft::sched {

// Once, before the first signal handler is installed.
void watch_forks() noexcept;

// Whether this process is such a child.
bool in_forked_child() noexcept;
// The same for signal handlers, which may run before the child has noticed: a system call.
bool handler_in_forked_child() noexcept;
[[noreturn]] void no_runtime_in_child() noexcept;

}  // namespace weft::sched
