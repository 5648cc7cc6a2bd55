// Putting goroutines into queues and taking them out: runnext, the P's ring, the global queue.
#pragma once

#include "base/delay.h"
#include "base/prefetch.h"
#include "poll/descriptor.h"
#include "sched/scheduler.h"

namespace weft::sched {

// [p.owner] The queue functions with a processor argument are for the M that owns it.

// To the back of the ring; a full ring moves half of itself, and the newcomer, to the global queue in one batch.
void put_last_overflowing(processor* p, runnable* r) noexcept;
[[gnu::always_inline]] inline void put_last(processor* p, runnable* r) noexcept {
  if (!p->ring.push(r)) [[unlikely]] put_last_overflowing(p, r);
}

// To the front: runs next on this P and inherits the time slice. Whoever stood there goes to the ring. Returns true if
// it is the only one waiting here.
[[gnu::always_inline]] inline bool put_next(processor* p, runnable* r) noexcept {
  base::delay();
  // [wake.submit] seq_cst: the work is published before the caller looks for sleepers. The only P has none to look for.
  runnable* old;
  if (p->alone) {
    old = p->runnext.load(std::memory_order_relaxed);
    p->runnext.store(r, std::memory_order_relaxed);
  } else {
    old = p->runnext.exchange(r, std::memory_order_seq_cst);
  }
  base::delay();
  if (old == nullptr) return p->ring.empty_to_owner();
  put_last(p, old);
  return false;
}

// To the global queue, for those without a P and for preempted goroutines.
// Returns how many were ever put there: once as many have left, it has.
std::uint64_t put_global(runnable* r) noexcept;

// Under the lock: the count that everybody looks at, after a change to the global queue or the list of the stopped.
void global_size_changed() noexcept WEFT_REQUIRES(sched.lock);

// Whether somebody stands in the global queue who is not stopped in place.
inline bool any_in_global() noexcept {
  const auto stopped = static_cast<std::size_t>(sched.stopped_in_place.load(std::memory_order_relaxed));
  return sched.global_size.load(std::memory_order_relaxed) > stopped;
}

// A goroutine stopped in place queues up, behind all that are in the global queue now.
void put_stopped(goroutine* g) noexcept WEFT_REQUIRES(sched.lock);
// The first of them, whoever else waits; null if there is none.
goroutine* take_stopped() noexcept WEFT_REQUIRES(sched.lock);

// One from the front of the global queue.
runnable* take_global_one(processor* p) noexcept WEFT_REQUIRES(sched.lock);

// This P's fair share: one is returned, the others go to its ring.
runnable* take_global_batch(processor* p) noexcept WEFT_REQUIRES(sched.lock);

// Goroutines that ready, or spawn, one another in turn share a slice through runnext. So that those in the ring do not wait
// out all of it each time, even such a chain queues up after this many.
inline constexpr std::uint32_t longest_streak = 256;

// A look at the clock costs as much as a switch: where there are timers, it is taken at every fourth.
inline constexpr std::uint32_t timer_ticks = 4;

// A P that never runs out of goroutines looks at the network once in so many choices, if somebody waits for it. A look is
// a system call, as dear as twenty switches.
inline constexpr std::uint32_t network_ticks = 1024;

[[gnu::always_inline]] inline runnable* take_runnext(processor* p) noexcept {
  runnable* r = p->runnext.load(std::memory_order_relaxed);
  if (r == nullptr) return nullptr;
  if (p->alone) {
    p->runnext.store(nullptr, std::memory_order_relaxed);
    return r;
  }
  // A thief may take it between the load and here; nobody but us puts a new one in.
  return p->runnext.exchange(nullptr, std::memory_order_acq_rel);
}

// Out of the ring, what was put there last (p->ring.peek_last()); false if a thief was faster.
[[gnu::always_inline]] inline bool take_last(processor* p) noexcept {
  return p->alone ? p->ring.take_back_unshared() : p->ring.take_back();
}

// The newest in the ring, if so many wait there that the order matters; else null. And back, if it is not what was hoped for.
runnable* take_newest_of_many(processor* p) noexcept;
void put_back_newest(processor* p, runnable* r) noexcept;

// The newest goroutine in the ring, if it has not begun and `parent`, which begins to wait, has spawned it, and so many wait
// here that the order matters: where each spawns others and waits for them, few are begun at a time this way; oldest first,
// nearly all would be. Else null. run()'s goroutine is at most the root of all trees: those that it waits for run in turn.
[[gnu::noinline]] runnable* take_newest_child(processor* p, goroutine* parent) noexcept;

// A timer is due. True: somebody stands in runnext, who runs first, and the timers have their turn at the next choice. For whom
// they ready goes to runnext too, and who was to run at once would find itself behind everybody in the ring, with all that those
// spawn. Once, until they had their turn: a chain through runnext does not keep them waiting, and one that runs for long
// loses its P to a timer that is due, as ever (sysmon).
inline bool put_off_timers(processor* p) noexcept {
  if (p->timers_put_off || p->runnext.load(std::memory_order_relaxed) == nullptr) return false;
  return p->timers_put_off = true;
}

// At the choices for which p->look_at was set: whether something else goes before the P's own queue. Every 61st time the global
// queue, if it has something; a timer that is due; now and then the network; a crowded core. Says when to look again.
[[gnu::noinline]] bool look_around(processor* p, std::uint32_t picks) noexcept;

// What number a choice has for the rules of every so many choices, if p->picks has this value then: short yields are choices, too.
inline std::uint32_t choice_at(const processor* p, std::uint32_t picks) noexcept { return picks + p->short_picks; }

// The owner, or who has stopped the world: there are no more short yields (sched/yield_x86_64.S) until the P has looked around, which
// it does sooner for those that there were.
void settle_short_yields(processor* p) noexcept;

// The owner, when it has used them up: it looks around, and if nothing goes before its own queue, it gets new ones.
void renew_short_yields(processor* p) noexcept;

// The P's next choice is to look around: its first timer was set. By the owner.
inline void look_around_soon(processor* p) noexcept {
  settle_short_yields(p);
  p->look_at = p->picks.load(std::memory_order_relaxed) + 1;
}

[[gnu::always_inline]] inline bool is_look_due(const processor* p, std::uint32_t picks) noexcept {
  return static_cast<std::int32_t>(picks - p->look_at) >= 0;
}

// Begins a choice; false: take the slow path.
[[gnu::always_inline]] inline bool begin_pick(processor* p) noexcept {
  const std::uint32_t picks = p->picks.load(std::memory_order_relaxed) + 1;
  if (p->attention.load(std::memory_order_relaxed)) [[unlikely]] return false;
  if (is_look_due(p, picks) && look_around(p, picks)) [[unlikely]] return false;
  p->picks.store(picks, std::memory_order_relaxed);
  return true;
}

// The choice of the next goroutine that needs no lock and no look elsewhere. Null: take the slow path. `parent`: who begins
// to wait, if that is the cause.
[[gnu::always_inline]] inline runnable* pick_fast(processor* p, goroutine* parent = nullptr) noexcept {
  if (!begin_pick(p)) [[unlikely]] return nullptr;
  if (runnable* r = take_runnext(p)) {  // the time slice is inherited: sched_tick stays
    if (++p->runnext_streak < longest_streak) return r;
    put_last(p, r);
  }
  p->runnext_streak = 0;
  if (parent != nullptr && parent->may_have_children) [[unlikely]] {
    if (runnable* r = take_newest_child(p, parent)) return r;  // inherits the slice, as from runnext
  }
  base::prefetch(p->ring.peek_second());
  runnable* r = p->alone ? p->ring.pop_unshared() : p->ring.pop();
  if (r == nullptr) return nullptr;
  p->begin_slice_of_queue();
  return r;
}

}  // namespace weft::sched
