// Taking the P from a goroutine that runs its own code, without its help and wherever it is: also asleep in the kernel in
// a call that nobody declared. The goroutine is loose from then on: it goes on without a P until its next call into weft,
// which finds the P gone (enter() in section.h), or until a signal stops it in place (preempt.h).
//
// The revoker sets machine::revoked from p_attached to p_revoked for Ms with locks == 0, passes a barrier through
// every running thread (membarrier), and looks at locks again. Either the M's raised `locks` is visible now, and the
// revoker backs off; or the M's next look at `revoked` comes after the barrier and sees p_revoked. Then it queues up for
// sched.lock, which the revoker holds all the while.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Once, before the first revocation.
void prepare_revoking() noexcept;
bool can_revoke() noexcept;

// Every running thread of the process passes a full barrier. False if this kernel does not let us.
bool barrier_everywhere() noexcept;

// First half; false if the M is in the runtime, or has no P to lose. A barrier_everywhere() comes next.
bool announce_revocation(machine* m) noexcept WEFT_REQUIRES(sched.lock);
// If that failed: it keeps its P. (The kernel may be short of memory for a moment.)
void withdraw_revocation(machine* m) noexcept WEFT_REQUIRES(sched.lock);
// Second half. The P, which now belongs to the caller; null if the M went into the runtime meanwhile.
processor* complete_revocation(machine* m) noexcept WEFT_REQUIRES(sched.lock);

// Both, for one M.
processor* revoke(machine* m) noexcept WEFT_REQUIRES(sched.lock);

// The M is no longer loose: it has come into the runtime, was given a P, or stops in place.
void no_longer_loose(machine* m, std::uint32_t now) noexcept WEFT_REQUIRES(sched.lock);

}  // namespace weft::sched
