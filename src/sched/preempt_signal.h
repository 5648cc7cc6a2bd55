// The signal that weft sends to its own threads, SIGURG unless told otherwise: to stop a goroutine in place (preempt.h), and
// to have a thread stand still while somebody looks at its stack (stand_still.h). The program may use the same signal for
// something else: whoever handled it before is called for what is not weft's.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Once, unless preemption is off.
void install_preempt_handler() noexcept;
// On each M: the signal must get through.
void unblock_preempt_signal() noexcept;

// Signals of one number do not queue, and a thread may get one for both: whoever needs an answer asks again, or looks for
// it whatever the signal was sent for.
enum class signal_purpose { stop_in_place, stand_still };
void send_preempt_signal(const machine* m, signal_purpose why) noexcept;

// Whether such a signal would be answered. With preemption off the handler is installed when it is first needed, here. False:
// the program has put its own in our place. One at a time.
bool has_preempt_handler() noexcept;

}  // namespace weft::sched
