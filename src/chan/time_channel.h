// A channel whose values come from the clock: what is behind after(), timer and ticker.
//
// It has no buffer and no sender. Its whole state is the deadline, and "there is a value" means "the deadline has come":
//
//   due == 0           stopped, or (one shot) received: never a value
//   due >  now         no value yet
//   due <= now         a value, `due` itself; received, due becomes 0, or for a ticker the next multiple after now
//
// So a timer that nobody waits on is two words and costs nothing, expired or not; a slow receiver of a ticker finds one
// tick, the oldest that it has missed, never two; and stop and reset, which write `due` under the lock, leave no value
// of an earlier deadline behind, because there is no place in which one could lie.
//
// The heap is only for those who wait. Invariant, whenever the lock is free:
//   somebody is in `receivers` and due != 0  =>  the node is pending for `due`, or its callback is on its way
//   nobody is in `receivers`                 =>  the node is not pending
// keep_armed() makes it so; whoever changes `due`, or joins or leaves `receivers`, calls it before the lock is released.
// A callback only says "look now": it hands out what is due, whoever it was sent for. One that comes too late finds a
// later deadline, or nobody, and does nothing; `seq` tells it whether what was pending is still pending.
//
// Rejected: Go's way, a buffer of one that is hidden from len() and drained by stop and reset, with a sequence number and
// a second lock against a send under way. All of that is about values that exist before somebody asks for them.
//
// Locks: the channel's, then (keep_armed) that of a timer heap. The callback is called without the heap's.
#pragma once

#include <atomic>
#include <cstdint>

#include "chan/channel.h"
#include "timer/node.h"

namespace weft::chans {

struct time_channel : channel {
  time_channel() noexcept;

  std::int64_t due_now() const noexcept;  // under the lock: the deadline if it has come, else 0
  void advance(std::int64_t now) noexcept;  // under the lock: `due` has been received
  void keep_armed() noexcept;               // under the lock
  bool set(std::int64_t when, std::int64_t every) noexcept;

  // Written under the lock. [time.due] release: a look without the lock, may_recv(), that finds the deadline past is
  // followed by the lock; one that does not is as good as one that came earlier.
  std::atomic<std::int64_t> due{0};
  std::int64_t period = 0;     // 0: one shot. This and all below: guarded by the lock
  std::int64_t armed_for = 0;  // what the node was last made pending for; 0: it is not, or its callback has come
  std::uint64_t seq = 0;       // of that
  timers::timer_node node;

 private:
  static void on_timer(void* self, std::uint64_t seq, std::int64_t lateness_ns) noexcept;
};

}  // namespace weft::chans
