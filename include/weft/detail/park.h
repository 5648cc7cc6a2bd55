// Parking and readying: the one door through which everything in weft that waits, waits. The same calls serve a
// goroutine and a plain thread; a plain thread has a stand-in goroutine that sleeps on a futex.
//
// The protocol of a wait:
//   1. the waiter makes itself findable (usually: enqueues itself on something, under that thing's lock);
//   2. park(commit, arg, why): the runtime takes the goroutine off its stack and then, on another stack, calls
//      commit(self, arg), which lets go of the lock. From that moment on a waker may find it;
//   3. the waker takes it off the queue (so that exactly one waker does it) and calls ready(self).
// commit may return false: "it has happened meanwhile". The goroutine then goes on without a ready().
#pragma once

#include <cstdint>

#include <weft/detail/wait_reason.h>

namespace weft::gmp {
struct goroutine;
}

namespace weft::detail {

using gmp::goroutine;

// This goroutine, or this thread's stand-in. Valid until the goroutine, or the thread, ends.
goroutine* self() noexcept;

// Who runs here, goroutine or thread, as a number that nobody else has. Not 0. (A goroutine object may stand for one goroutine
// after another, and for one in place of another.)
std::uint64_t self_number() noexcept;

// Runs on a stack that is not the goroutine's own; must not block, throw, allocate or park.
using commit_fn = bool (*)(goroutine* self, void* arg);

void park(commit_fn commit, void* arg, wait_reason why) noexcept;

// Makes a parked goroutine runnable. It goes to the front of this P's queue: it runs next, on this P, unless somebody
// steals it. Exactly one ready() for each park().
void ready(goroutine* g) noexcept;

// CLOCK_MONOTONIC in nanoseconds; "never" for a deadline is INT64_MAX.
std::int64_t now_ns() noexcept;

}  // namespace weft::detail
