// Goroutines (and plain threads) that wait for file descriptors, and who polls for them.
//
// The poller is asked in three places: by an M that has run out of goroutines, before it steals (without waiting, one M
// at a time); by the last M that has nothing to do, which sleeps there until an event or the next timer; and by sysmon
// when nobody has polled for 10 ms. A P that never runs out looks, too, at every 1024th choice, and when sysmon has ended a slice
// because a socket is ready. Nobody polls while no descriptor is waited for.
//
// An M that leaves the poller with an event for one goroutine takes a P and runs it, and wakes no successor: most often it
// is back before anything else happens. Until then idle Ps have nobody who waits for events and timers on their behalf. If
// it did not come back soon the last time, a successor is woken at once; and sysmon watches (see watch_poller()). It is the
// same for one that leaves for a timer, unless another timer is due soon (see stop_spinning_with_work()).
#pragma once

#include <cstdint>

#include "poll/poller.h"
#include "sched/scheduler.h"

namespace weft::sched {

// As poll::watch(). From a plain thread it starts the runtime, which has the poller, if nothing has yet.
int watch_descriptor(int fd, poll::descriptor& d);

// Parks until the descriptor may be ready in this direction. Returns 0: try again; ETIMEDOUT: its deadline, or `limit`
// (CLOCK_MONOTONIC), has come; ECANCELED: it was closed. One goroutine at a time for each direction.
int wait_ready(poll::descriptor& d, poll::direction which, std::int64_t limit = poll::no_deadline) noexcept;

// From now on waits in this direction end at the deadline, also one that is under way.
void set_deadline(poll::descriptor& d, poll::direction which, std::int64_t deadline_ns) noexcept;

// Whoever waits looks again.
void nudge(poll::descriptor& d, poll::direction which) noexcept;
// The same, and also who is about to wait does.
void alert(poll::descriptor& d, poll::direction which) noexcept;

// Ends all waits, now and later, with ECANCELED.
void cancel_waits(poll::descriptor& d) noexcept;

// On g0, for an M with a P: goroutines that can go on are put into the queue of its P. True if there were any.
bool poll_network(processor* p) noexcept;

// The M that waits there comes back at once, if it has not left already: where there may be no more threads, it is the one at hand.
void recall_from_poller() noexcept;

// The M that has nothing to do, and no P, and is retiring: sleeps until an event or the next timer, if there is something
// to wait for and nobody else does (not_at_all: else). in_poller: `found` has who can go on; and a timer may be due.
// called_away: it has not slept, because it was needed, and has a P.
enum class waited { not_at_all, called_away, in_poller };
waited wait_for_events(machine* m, poll::events& found) noexcept;

// Readies all of them: on this P, or, if there is none, through the global queue.
void ready_all(poll::ready_list& list, processor* p) noexcept;

// Somebody should wait in the poller, and nobody does.
bool poller_is_missing() noexcept;

// sysmon: polls on behalf of all Ps.
void poll_for_all() noexcept;

}  // namespace weft::sched
