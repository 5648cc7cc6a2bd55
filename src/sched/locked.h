// lock_os_thread(): a goroutine and a thread that serve only each other. While the goroutine waits, the thread gives its P
// to others and sleeps; whoever picks the goroutine hands a P to the thread (hand_to_own_machine() in preempt.h).
//
// run()'s goroutine locks itself to the thread that called run(). That thread is an M of its own kind: it sleeps until the
// main goroutine is locked to it, and serves nobody else ever.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// On g0, its goroutine is off the thread: gives the P away, sleeps until the goroutine's turn comes, and runs it.
void serve_locked(machine* m) noexcept;

// On g0: the P, if it has one, goes to others.
void give_up_processor(machine* m) noexcept;

// The running goroutine ends while it is locked: it is set free, and its thread will end.
void end_locked(machine* m, goroutine* g) noexcept;

// The thread that calls run() becomes the main goroutine's home, and stays a plain thread until that is locked to it.
machine* adopt_main_thread() noexcept;
// Sleeps until the main goroutine has ended (woken without a P, or `ended_here` is set by a hook of its own), and runs it
// while it is locked to this thread.
void serve_main(machine* m, const bool& ended_here) noexcept;

}  // namespace weft::sched
