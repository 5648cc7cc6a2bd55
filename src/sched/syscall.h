// Blocking calls. The P stays with the M while a call is short; the goroutine's state, changed by compare-and-swap,
// decides between the M that returns and whoever takes the P:
//
//   running --begin_blocking--> syscall --end_blocking--> running        nobody took it: no lock, two writes to one word
//                                  \--take_from_call--> detached         the P belongs to the taker; the M needs one again
//
// [call.begin] the M publishes on_machine and all it did to the P with the store of `syscall`; the taker's swap acquires.
#pragma once

#include "sched/idle.h"
#include "sched/scheduler.h"

namespace weft::sched {

// The goroutine that is in a blocking call with this P, at the moment; null if none is. From any thread.
goroutine* goroutine_in_call(const processor* p) noexcept;

// The P of a goroutine that is in a blocking call now belongs to the caller; null if it is not in one (any more).
processor* take_from_call(goroutine* g) noexcept WEFT_REQUIRES(sched.lock);

// A P, just taken, goes to an M that runs its goroutines or looks for some, or to the idle list. Returns the M to wake;
// finish_hand_off() does it, without the lock. There is an idle M.
machine* hand_off(processor* p, core_wish wish = core_wish::none) noexcept WEFT_REQUIRES(sched.lock);
void finish_hand_off(machine* woken) noexcept;

// The goroutine has come back, in a section, from a call or from user code, and its P is gone: gets one, or waits in
// the global queue. Returns the M it is on afterwards.
machine* regain_after_loss(machine* m) noexcept;

}  // namespace weft::sched
