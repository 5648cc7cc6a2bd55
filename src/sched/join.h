// Joining in place: a goroutine that waits for the end of one that has not begun lends it its stack, so that neither is
// switched. Spawning and joining then cost little more than a call.
//
// The one that has not begun is a record at the front of this P's queue (runnext), or the last in its ring: where a fork that
// is joined by who forked it stands, unless somebody has stolen it. Who waits for many, and is waited for itself, lends its stack
// to one after the other of them, newest first, as long as many are queued here. The waiter cannot go on before it has ended, so nothing
// is lost by its stack being in use, whatever the borrower does: it may park, yield, be stopped in place, block.
//
// One goroutine object then stands for two goroutines, or more. It is always the innermost's; what makes the others who they
// are (number, body, locals, exceptions, errno) is kept in a `lender` on the stack, linked through goroutine::lender.
// Not done where it could be noticed:
//   - the waiter is tied to its thread: the borrower would run there too;
//   - less than a whole default stack would be left (stacks have some room more than was asked for, see stack.cpp);
//   - the wait has a deadline;
//   - the borrower was started with options.
// An exception that leaves the borrower does not reach the waiter's handlers: the frame between the two ends the stack for
// unwinders, as a goroutine's first one does (arch/borrow_*.S).
#pragma once

#include "gmp/goroutine.h"

namespace weft::sched {

// Visits the lenders of a goroutine's stack, innermost first. While nobody runs on it.
template <class Visit>
void for_each_lender(const gmp::goroutine& g, Visit&& visit) {
  for (const gmp::lender* l = g.lender; l != nullptr; l = l->outer) visit(*l);
}

}  // namespace weft::sched
