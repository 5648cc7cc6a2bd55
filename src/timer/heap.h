// A P's timers. Any thread may add, stop and reset at any time; any M that finds one due may run it, the owner of the
// P or a thief. Knows nothing of goroutines: whatever a timer does is behind its callback.
//
// Callbacks
//   run() takes what is due in batches under the lock and then calls without it, having done all it will ever do to
//   these nodes: a one-shot node is idle by then, a periodic one pending again. So a callback may add, reset and stop
//   any timer, its own included; and two calls for one node overlap if it was made pending again and came due during
//   the first (tell them apart by seq).
//
// When a node may be destroyed
//   When it is idle and its callback is neither running nor about to be. That is certain
//     - when stop() returned true for a node that is not periodic and was made pending only once;
//     - when stop_sync() has returned, always;
//     - for the callback of a one-shot node itself, and whoever it hands the node to (the goroutine that it readies),
//       if nobody else stops or resets that node.
//   It is not certain when stop() returned false, nor for others than these once the callback has begun or has had its
//   effect: stop_sync() first.
//
// Whoever calls in here cannot be preempted in place meanwhile (a goroutine holds machine::locks), as for any runtime
// lock. A heap is never destroyed while a node that was ever added to it may still be used: Ps live for ever.
//
// Sleep and wake: next_when() is one side of the protocol by which a thread sleeps until the earliest timer.
//   [timer.next]  add, reset and move_all store an earlier deadline with seq_cst, then (in sched) look who sleeps and
//                 until when; a thread that goes to sleep announces until when with seq_cst, then loads next_when() of
//                 every heap with seq_cst. One of the two sees the other.
//   [timer.mask]  of every heap whose bit is set in the mask, that is. The bit is set before the one who stores the deadline
//                 looks who sleeps, and cleared only while there is no timer; both under the lock. So who does not see it
//                 is seen by who sets it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/spin_lock.h"
#include "timer/node.h"
#include "timer/order.h"

namespace weft::timers {

// What became of an add or a reset.
struct armed {
  bool was_pending;  // there was an earlier deadline, which will not fire
  bool is_first;     // next_when() of its heap came down: whoever sleeps until later must be woken
};

struct ran {
  std::int64_t next_when;  // the earliest deadline now; 0 if there is none. Past if run() stopped at its limit
  std::uint32_t count;     // callbacks called
};

class heap {
 public:
  heap() noexcept = default;
  heap(const heap&) = delete;
  heap& operator=(const heap&) = delete;
  // Fatal if a timer is left.
  ~heap();

  // Calls what is due at `now`, in the order of deadlines, at most `max` and at most as many as there are timers at the
  // beginning: a callback that makes its timer due again at once does not keep run() from returning.
  ran run(std::int64_t now, std::uint32_t max = std::numeric_limits<std::uint32_t>::max()) noexcept;

  // As run(), for a thief: nothing if somebody else is at the heap right now, who is likely to run them or to set another.
  ran run_if_free(std::int64_t now) noexcept;

  // The earliest deadline, or that of an earlier timer which was stopped; 0 if there is none. Without the lock: at most one
  // change old.
  std::int64_t next_when() const noexcept { return next_when_.load(std::memory_order_seq_cst); }  // [timer.next]

  // Lets next_when() forget timers that were stopped. Not for who only wants to know whether one is due: run() finds out.
  void forget_stopped() noexcept {
    if (first_may_be_stopped_.load(std::memory_order_relaxed)) look_again();
  }

  std::size_t size() noexcept;
  bool empty() noexcept { return size() == 0; }

  // Before anybody else knows this heap: this bit of the word says whether there may be timers here. (A heap that is in no mask has none.)
  void list_in(std::atomic<std::uint64_t>& mask, std::uint64_t bit) noexcept;
  // The P goes idle: the bit need not stay for timers that are gone. As long as a P works they come and go too often for that.
  void unlist_if_empty() noexcept {
    if (next_when_.load(std::memory_order_relaxed) == 0 && listed_.load(std::memory_order_relaxed)) unlist();
  }

  // The P is back after move_all(): timers may be added to this heap again.
  void reopen() noexcept;

 private:
  friend armed add(heap&, timer_node&, std::int64_t, std::int64_t, std::uint64_t) noexcept;
  friend armed add_fresh(heap&, timer_node&, std::int64_t) noexcept;
  friend armed reset(timer_node&, std::int64_t, std::int64_t, std::uint64_t) noexcept;
  friend bool stop(timer_node&) noexcept;
  friend bool stop_sync(timer_node&) noexcept;
  friend bool move_all(heap&, heap&) noexcept;

  // One run() in progress, on its thread's stack, and the batch that it calls. `node` is compared, never followed: it
  // may be gone.
  struct batch {
    static constexpr std::uint32_t capacity = 16;
    struct due {
      const timer_node* node;
      callback fn;
      void* arg;
      std::uint64_t seq;
      std::int64_t lateness;
    };
    due timers[capacity];
    std::uint32_t size = 0;               // written under the lock
    std::atomic<std::uint32_t> done = 0;  // [timer.done] stored with release after each call
    batch* next = nullptr;

    void call_all() noexcept;
  };

  struct deadline {
    std::int64_t when, period;
    std::uint64_t seq;
  };

  ran run_locked(std::int64_t now, std::uint32_t max) noexcept WEFT_REQUIRES(lock_);
  bool is_due(std::int64_t now, std::int64_t& first) const noexcept {
    first = next_when();
    return first != 0 && first <= now;
  }

  static heap* lock_home(timer_node& node) noexcept;
  static armed arm(heap* wanted, timer_node& node, const deadline& d) noexcept;
  static armed arm_fresh(heap* wanted, timer_node& node, std::int64_t when) noexcept;

  heap* better_home(heap* wanted, const timer_node& node) const noexcept WEFT_REQUIRES(lock_);
  armed arm_here(timer_node& node, const deadline& d) noexcept WEFT_REQUIRES(lock_);
  bool insert(timer_node& node, std::int64_t when) noexcept WEFT_REQUIRES(lock_);
  bool disarm(timer_node& node) noexcept WEFT_REQUIRES(lock_);
  bool disarm_for_good(timer_node& node, bool waited, bool& stopped) noexcept WEFT_REQUIRES(lock_);
  void take_due(batch& b, std::int64_t now, std::size_t max) noexcept WEFT_REQUIRES(lock_);
  void finish(batch& b) noexcept WEFT_REQUIRES(lock_);
  bool is_calling(const timer_node& node) const noexcept WEFT_REQUIRES(lock_);
  void wait_for_calls() noexcept WEFT_REQUIRES(lock_);
  bool take_all(heap& from) noexcept WEFT_REQUIRES(lock_, from.lock_);
  bool publish() noexcept WEFT_REQUIRES(lock_);
  void look_again() noexcept;
  void store_earlier(std::int64_t when) noexcept WEFT_REQUIRES(lock_);
  void unlist() noexcept;

  alignas(64) std::atomic<std::int64_t> next_when_{0};  // read by every M that looks for work
  std::atomic<bool> first_may_be_stopped_{false};       // written under the lock: next_when_ may be too early
  std::atomic<bool> listed_{true};                      // written under the lock: the bit is set, or there is none
  std::atomic<std::uint64_t>* mask_ = nullptr;
  std::uint64_t bit_ = 0;

  alignas(64) base::spin_lock<base::lock_rank::timers> lock_;
  bool moving_ WEFT_GUARDED_BY(lock_) = false;       // move_all waits for the calls in progress; no new ones
  heap* moved_to_ WEFT_GUARDED_BY(lock_) = nullptr;  // set: holds no timers, they go there
  batch* calls_ WEFT_GUARDED_BY(lock_) = nullptr;
  order order_ WEFT_GUARDED_BY(lock_);
};

// `when` is CLOCK_MONOTONIC in nanoseconds; before 1 counts as 1. `period`: 0 once; else again every so many
// nanoseconds, periods that were missed being left out. `seq` is handed to the callback.

// Makes the node pending in `wanted`. If it is pending already, it gets the new deadline and stays where it is; and if
// its former heap is still calling it, it goes back there.
armed add(heap& wanted, timer_node& node, std::int64_t when, std::int64_t period = 0, std::uint64_t seq = 0) noexcept;

// As add, for a fresh node that nobody else knows of yet.
armed add_fresh(heap& wanted, timer_node& node, std::int64_t when) noexcept;

// As add, in the heap where the node is or was last. It has been added before.
armed reset(timer_node& node, std::int64_t when, std::int64_t period = 0, std::uint64_t seq = 0) noexcept;

// True: the node was pending, and the callback will not be called for that deadline. (One for an earlier deadline may
// still be running, if there was one: a periodic node, or one that was made pending again.)
// False: it was not pending. The callback has been called, or will be in a moment, or is running; or there was nothing
// to stop.
bool stop(timer_node& node) noexcept;

// As stop, and returns only when the callback is not running and will not be called. If somebody makes the node pending
// again meanwhile, the callback say, that is stopped too. Not from a callback, nor with a lock held: it may wait for a callback,
// and for those before it in the batch. That is short, so it spins. Waits for nothing if the node is fresh or was
// stopped in time; the goroutine that the callback of a one-shot node readied need not call it (see above).
bool stop_sync(timer_node& node) noexcept;

// The P of `from` goes away: moves all its timers to `to`, where next_when() came down if the result is true. Until
// reopen(), timers that are added to `from`, or reset there, go to `to`. Not from a callback.
bool move_all(heap& from, heap& to) noexcept;

}  // namespace weft::timers
