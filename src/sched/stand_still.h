// A thread that runs a goroutine's own code is held for a moment, wherever it is, so that somebody can walk over its
// stack from outside. With the world stopped these are the only goroutines that move (census.h).
//
// machine::stand says how far it is:
//
//   free --ask_to_stand()--> asked --the M's handler--> standing --let_go()--> free
//                              \--let_go()--> free        it did not come in time: it blocks the signal, or gets no
//                              core
//
//   asked      a signal is on its way
//   standing   the thread sleeps in the handler, and machine::position says where it was interrupted
//
// Who asks holds the lifecycle lock, so there is one at a time. Asking, standing and letting go are three words and
// three futex calls; whatever lock the thread holds (malloc's, the loader's, one of weft's own) it holds while it
// stands. So between ask_to_stand() and let_go() who looks takes no lock and allocates nothing: it reads memory, and it
// hurries.
//
// Only the M's own thread makes asked -> standing. It competes with let_go(), by compare-and-swap: a signal that
// arrives after somebody has given up finds nothing to do. It leaves as soon as the word is no longer `standing`. By
// then the next ask may be there; its signal is pending as long as the handler runs, and brings the thread back.
//
// The handler looks at the word whatever the signal was sent for: a pending signal swallows the next one of its number.
//
// [stand.position] the handler writes the position, then `standing` with release; await_standing() acquires.
// [stand.let_go]   let_go() releases: the walk over the stack comes before anything that the thread does to it again.
//
// A thread that sleeps in the kernel needs nothing of this, and a signal would cut its call short: see
// os/thread_state.h. In the child of a fork nobody asks, and the one thread that is there stands in no handler.
#pragma once

#include "os/machine_state.h"
#include "sched/scheduler.h"

namespace weft::sched {

void ask_to_stand(machine* m) noexcept;
// True: it stands. False: the time came first.
bool await_standing(machine* m, std::int64_t deadline_ns) noexcept;
bool is_standing(const machine* m) noexcept;
void let_go(machine* m) noexcept;

// In the handler.
void stand_if_asked(machine* m, const void* signal_context) noexcept;

// A thread that is about to end the program and will not leave the place: it need not be asked.
void stand_for_good(machine* m, const os::machine_state& position) noexcept;

// In the handler: where the goroutine on this M was interrupted. A sanitizer may hold a signal back and call the
// handler later, on the goroutine's own stack: then the registers are those of a moment that is long gone, and it
// stands where this is.
[[gnu::always_inline]] inline os::machine_state position_in_handler(const machine* m,
                                                                    const void* signal_context) noexcept {
  const os::machine_state now = os::here();
  const goroutine* g = m->curg;
  const bool on_its_stack = g != nullptr && now.sp >= reinterpret_cast<std::uintptr_t>(g->stack_low) &&
                            now.sp < reinterpret_cast<std::uintptr_t>(g);
  return on_its_stack ? now : os::interrupted_at(signal_context);
}

}  // namespace weft::sched
