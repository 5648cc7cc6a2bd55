// Stack overflow: a goroutine that touched its guard page is named, with its stack, before the program ends.
#pragma once

namespace weft::sched {

// SIGSEGV and SIGBUS; faults that are not ours go to whoever handled them before.
void install_overflow_handler() noexcept;

// This thread takes signals on a stack of its own: a goroutine's may be full.
// Returns it; null if there was one already that is large enough, which somebody else made.
void* use_signal_stack() noexcept;
// The thread is about to end; `own` is what use_signal_stack() returned. Somebody may have put another in its place.
void drop_signal_stack(void* own) noexcept;

}  // namespace weft::sched
