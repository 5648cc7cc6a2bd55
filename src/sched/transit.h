// A P on its way to an M that is being woken: tens of microseconds, in which it serves nobody. Where many threads come back from
// blocking calls, all Ps would be on their way all the time, each to a thread that slept, while those that are awake queue up
// and go to sleep. So who comes back may take such a P for its own goroutine, at once. The M that arrives without a P goes back
// to sleep, unless it has been given another one by then, which needs no system call.
//
//   hand_off      handed = M, then M->next_p = P      [transit.give] who takes next_p sees itself in `handed`, and clears it
//   M arrives     takes next_p by an exchange: it has the P; or it is null
//   rob           takes handed, then that M's next_p by an exchange: it has the P; or it is null, M has arrived. robbed = M
//   hand_off      finds `robbed`: next_p is set again, and nobody is woken
//   M arrives     (without a P) looks again under the lock: takes what it was given, or is not `robbed` any more and goes idle
//
// All but the exchange of who arrives happens under sched.lock; and an M that has arrived comes by that lock before it can be
// handed another P by anybody. An M that was handed a P as a spinner is not robbed: others count on it.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// From here on the P is on its way to `m`, which somebody wakes, or has woken. Who sees it sees all that was done to the M before.
inline void send_on_its_way(processor* p, machine* m) noexcept {
  p->bound_for.store(m, std::memory_order_relaxed);
  m->next_p.store(p, std::memory_order_release);  // [transit.give]
}

// The P that is on its way to `m`.
void announce_transit(machine* m) noexcept WEFT_REQUIRES(sched.lock);

// One that is on its way to somebody else; null if there is none, or if those who were to have it have waited long enough.
processor* take_from_transit() noexcept WEFT_REQUIRES(sched.lock);

// An M that is awake, or about to be, without a P, and will find one that it is given; null if there is none. It is the
// caller's to give one to.
machine* take_robbed() noexcept WEFT_REQUIRES(sched.lock);

// On the M, woken: its P. Null: it was taken back, and the M is to go idle.
processor* arrive(machine* m) noexcept;

}  // namespace weft::sched
