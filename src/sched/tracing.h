// What the scheduler tells the execution trace. A P has a log while a trace is on; whoever owns the P looks whether it
// has, which is all that a trace costs while there is none, and calls the functions here.
#pragma once

#include "sched/scheduler.h"
#include "trace/log.h"

namespace weft::sched {

// [p.owner] as in queues.h, or the caller has taken the P from its owner and not passed it on yet.
[[gnu::always_inline]] inline bool is_traced(const processor* p) noexcept { return p->log != nullptr; }

// The P's goroutine changes. Before the switch: `from` is in the state that it leaves with.
[[gnu::cold, gnu::noinline]] void trace_switch(processor* p, const goroutine* from, const goroutine* to) noexcept;

[[gnu::cold, gnu::noinline]] void trace_start(processor* p, const goroutine* g) noexcept;
[[gnu::cold, gnu::noinline]] void trace_stop(processor* p, const goroutine* g, trace::why why) noexcept;

// It begins to wait for the end of another, which runs on its stack.
[[gnu::cold, gnu::noinline]] void trace_lending(processor* p, const goroutine* g, const gmp::lender& l) noexcept;

// The record has just become this goroutine's body.
[[gnu::cold, gnu::noinline]] void trace_birth(processor* p, const goroutine* g) noexcept;

[[gnu::cold, gnu::noinline]] void trace_spawn(processor* p, const record* r) noexcept;

// Before it is in a queue.
[[gnu::cold, gnu::noinline]] void trace_ready(processor* p, const goroutine* g) noexcept;

[[gnu::cold, gnu::noinline]] void trace_steal(processor* thief, const processor* victim, std::uint32_t moved) noexcept;
[[gnu::cold, gnu::noinline]] void trace_thread(processor* p, const machine* m) noexcept;

// ---- by those who have no P ----------------------------------------------------------------------------------------

void trace_spawn_outside(const record* r) noexcept;
void trace_ready_outside(const goroutine* g) noexcept;
void trace_world(trace::kind stops_or_goes) noexcept;

// ---- while the world is stopped ------------------------------------------------------------------------------------

// A trace begins with all goroutines that there are.
void begin_trace() noexcept;
// Keeps what is new in so many chunks, for who takes the recording.
void begin_recording(std::uint32_t chunks) noexcept;
trace::recording take_recording() noexcept;
void end_trace() noexcept;
// Gives the Ps the logs that they should have now.
void attach_logs() noexcept;

}  // namespace weft::sched
