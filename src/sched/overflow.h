// Stack overflow: a goroutine that touched its guard page is named, with its stack, before the program ends.
#pragma once

namespace weft::sched {

// SIGSEGV and SIGBUS; faults that are not ours go to whoever handled them before.
void install_overflow_handler() noexcept;

// This thread takes signals on a stack of its own: a goroutine's may be full.
void use_signal_stack() noexcept;
// The thread is about to end.
void drop_signal_stack() noexcept;

}  // namespace weft::sched
