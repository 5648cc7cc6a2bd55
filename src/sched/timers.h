// The Ps' timer heaps, as the scheduler uses them: who runs what is due, who sleeps until the next one.
#pragma once

#include <cstdint>

#include "sched/scheduler.h"
#include "timer/heap.h"

namespace weft::sched {

// Makes the timer pending on this M's P (from a plain thread: on P 0), and sees to it that somebody is awake in time. True
// if it was pending before.
bool start_timer(timers::timer_node& node, std::int64_t when_ns, std::int64_t period_ns = 0, std::uint64_t seq = 0) noexcept;
// The same for a timer that nobody else knows of yet.
void start_fresh_timer(timers::timer_node& node, std::int64_t when_ns) noexcept;
bool stop_timer(timers::timer_node& node) noexcept;
bool stop_timer_sync(timers::timer_node& node) noexcept;

// On g0, about `p`, whoever owns it; `now` is 0 until the clock had to be read. Whether something seems to be due; and runs what is:
// true if something ran.
bool is_timer_due(const processor* p, std::int64_t& now) noexcept;
bool run_timers(processor* p, std::int64_t& now) noexcept;
// The same for a thief, who does not wait for those who are at the timers. But as long as they are due he comes back for them at once,
// and who has them may be off its core, maybe off this one: so he waits after all if that happens many times in a row.
bool steal_timers(machine* thief, processor* victim, std::int64_t& now) noexcept;

// The earliest deadline of all Ps, or an earlier one of a timer that was stopped; 0 if there is none.
std::int64_t next_timer() noexcept;
// How many have been run, ever, by all Ps.
std::uint64_t timers_run() noexcept;
// From now on next_timer() does not count those that have been stopped: before a thread sleeps until then. Without a lock.
void forget_stopped_timers() noexcept;

}  // namespace weft::sched
