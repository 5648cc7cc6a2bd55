// P: the right to run goroutines, and everything that makes running them cheap without a lock.
//
// States (sched.lock guards the changes):
//   idle     in sched's idle list; its queue is empty
//   running  owned by an M
//   stopped  held by who stopped the world
//   dead     beyond the current number of Ps
//
// What only the owning M touches comes first; what thieves and sysmon look at has lines of its own.
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/detail/record.h>

#include "base/counter.h"
#include "base/peekable.h"
#include "base/widened.h"
#include "gmp/goroutine.h"
#include "gmp/magazine.h"
#include "gmp/run_queue.h"
#include "timer/heap.h"
#include "trace/log.h"

namespace weft::gmp {

struct machine;
struct timer_block;

enum class processor_state : std::uint32_t { idle, running, stopped, dead };

// Written by the owner, read by anyone. Every mechanism has its counter.
struct processor_counters {
  base::counter created, finished;           // goroutines
  base::counter parks, readied, yields;
  base::counter stacks_bound;                // records that got a stack from a cache or the system
  base::counter stacks_inherited;            // records that ran on the warm stack of the goroutine before
  base::counter joined_in_place;             // records that ran on the stack of who waited for them
  base::counter depth_first;                 // records that ran before those that were there first, as their parent waited
  base::counter switches_via_g0;             // the others went straight from goroutine to goroutine
  base::counter overflows;                   // half rings moved to the global queue
  base::counter global_batches, global_taken, global_ticks;  // fair shares, goroutines in them, 61-tick looks
  base::counter steal_attempts, steals, stolen;              // passes over all Ps, successes, goroutines
  base::counter runnext_steals, runnext_spared;              // grace over; owner was about to run it
  base::counter steals_put_off;                              // goroutines were left to their P for a while: gmp/hauls.h
  base::counter spins;                       // Ms that began to spin
  base::counter preempted_slices;            // slices ended cooperatively
  base::counter backlog_preemptions;         // slices ended early: the goroutine fills the global queue too fast
  base::counter calls_retaken, calls_handed_over;            // blocking calls whose P was taken; those at their beginning
  base::counter timers_started, timers_run, timers_stolen;   // stolen: runs of another P's due timers
  base::counter homes_given, homes_left;     // channels that got this P as their home; that it sent away from theirs (plain threads do, too)
  base::counter locked_turns;                // goroutines that got this P on the thread they are locked to
};

struct processor {
  static constexpr std::uint32_t ring_size = 256;
  static constexpr std::uint32_t stack_cache_size = 32;

  // -- the owner's --
  std::int32_t id = 0;
  bool alone = false;                                // there is no other P: nobody steals from this one
  trace::log* log = nullptr;                         // while a trace is on: changed only while the world is stopped
  // What the last goroutine that parked here waits for. An M whose P was taken during a call may look at it.
  base::peekable_value<detail::wait_reason> last_wait{detail::wait_reason::none};
  std::uint32_t look_at = 0;                         // when `picks` gets here: see sched/queues.h
  std::uint32_t short_picks = 0;                     // short yields that count as choices beside `picks`: see choice_at()
  bool went_deep = false;                            // a child was taken before older ones: see take_newest_child()
  bool timers_put_off = false;                       // who stood in runnext went before a timer: see put_off_timers()
  std::int64_t turn_of_global = 0;                   // when the global queue had its last turn (coarse clock)
  std::uint32_t runnext_streak = 0;                  // choices in a row that came from runnext
  std::uint32_t queue_turn = 0;                      // sched_tick when ring or global queue had their last turn
  magazines<detail::record> records;                 // free spawn records (sched/records.h)
  magazines<timer_block> timer_blocks;               // free timers with a function (sched/timer_blocks.h)
  std::uint32_t stack_count = 0;
  goroutine* stacks[stack_cache_size] = {};          // dead goroutines, stacks warm
  std::uint32_t long_calls = 0;                      // score: blocking calls here tend to be long
  std::uint64_t next_id = 0, last_id = 0;            // goroutine ids reserved for this P

  // -- written by the owner, read by others --
  alignas(64) std::atomic<std::uint32_t> picks{0};        // every choice of a goroutine but short yields
  std::atomic<std::uint32_t> sched_tick{0};               // those that began a new time slice: see slices()
  // Yields on the short way (sched/yield_x86_64.S), which keeps no other count. Lower half: how many more there may be, none while
  // there are other Ps or a trace is on. Upper half: how many there will have been then. [yield.short]
  std::atomic<std::uint64_t> short_yields_credit{0};
  std::atomic<std::uint64_t> calls{0};                    // blocking calls begun
  std::atomic<processor_state> state{processor_state::dead};
  std::atomic<machine*> owner{nullptr};
  std::atomic<machine*> bound_for{nullptr};               // to whom it was sent last: on its way as long as that one's next_p says so

  // -- written by others, read by the owner at every switch --
  alignas(64) std::atomic<bool> attention{false};          // end of slice, or stop: take the slow path
  std::atomic<bool> poll_first{false};                     // its next choice is to look at the network: see sched/sysmon.cpp
  std::atomic<bool> crowded{false};                        // its M shares a core with another: see sched/placement.h

  // -- both --
  alignas(64) std::atomic<detail::runnable*> runnext{nullptr};
  run_queue<detail::runnable, ring_size> ring;

  alignas(64) processor_counters counters;
  base::widened picks_noted, short_yields_noted;

  timers::heap timers;

  processor* idle_link = nullptr;
  machine* revoked_from = nullptr;                   // by who stops the world, to be given back (sched.lock)

  // sysmon's notes
  std::uint32_t seen_tick = 0;
  std::uint32_t seen_picks = 0;
  std::int64_t seen_when = 0;
  bool asked = false;            // to give way, in this slice
  std::int64_t taken_when = 0;   // from a goroutine that did not give way, for the last time
  std::int64_t seen_cpu = 0;     // of its thread, at the last such look; 0: there was none
  std::int64_t next_look = 0;    // into the slice: whether it sleeps in the kernel
  std::uint32_t vain_looks = 0;  // in a row: it did not
  const machine* seen_bound_for = nullptr;  // it was on its way there (sched.lock)
  std::uint64_t seen_calls = 0;
  std::int64_t seen_call_when = 0;

  // The owner: whoever runs next has a new time slice.
  void begin_slice() noexcept { sched_tick.store(sched_tick.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  // The same for one that comes from a queue: they have their turn. Or there is nobody in them.
  void begin_slice_of_queue() noexcept {
    begin_slice();
    note_queue_turn();
  }
  void note_queue_turn() noexcept { queue_turn = sched_tick.load(std::memory_order_relaxed); }
  std::uint32_t slices_since_queue_turn() const noexcept { return sched_tick.load(std::memory_order_relaxed) - queue_turn; }

  // By anyone.
  std::uint32_t short_yields() const noexcept {
    const std::uint64_t credit = short_yields_credit.load(std::memory_order_relaxed);
    return static_cast<std::uint32_t>(credit >> 32) - static_cast<std::uint32_t>(credit);
  }
  std::uint64_t all_short_yields() const noexcept {
    return short_yields_noted.read([this] { return short_yields(); });
  }
  std::uint64_t all_picks() const noexcept {
    return picks_noted.read([this] { return picks.load(std::memory_order_relaxed); });
  }
  std::uint32_t slices() const noexcept { return sched_tick.load(std::memory_order_relaxed) + short_yields(); }

  bool has_work() const noexcept { return runnext.load(std::memory_order_seq_cst) != nullptr || !ring.empty(); }
};

}  // namespace weft::gmp
