// sysmon's watch on those that run: whose time is up, who makes room for a timer or a socket, who sleeps in a call that nobody
// declared. A goroutine is asked first (processor::attention); if it does not give way, its P is taken (preempt.h).
//
// A timer that is due waits for due_slice_ns of whoever runs on its P, and it takes sysmon up to a millisecond more to find out.
// But where somebody had to be stopped lately, most likely the next one does not give way either: such a P is *hogged*, and
// sysmon comes to it when its timer is due. So a timer beside a goroutine that computes on and on is late by what it takes to
// stop one, some 100 µs. That happens once in half of due_slice_ns at most, so that it costs the other a few percent. Rejected: the same
// for all Ps, always; sysmon would have to look at busy Ps, which see to their timers themselves, five times as often.
#pragma once

#include <cstdint>

#include "sched/scheduler.h"

namespace weft::sched {

class slices {
 public:
  // Looks at all Ps, and does what is due. Returns when to look again: a slice ends, or who was asked to give way has had its grace.
  std::int64_t watch(std::int64_t now) noexcept;
  // Whether it matters that this is not later: a P was hogged at the last look.
  bool is_hogged() const noexcept { return any_hogged_; }

 private:
  void watch_sockets() noexcept;
  void watch_slice(processor* p, std::int64_t now) noexcept;
  bool is_socket_left() noexcept;
  bool is_for_socket(const processor* p) const noexcept { return socket_ready_since_ != 0 && serves_socket_ == p; }
  std::int64_t end_of_slice(const processor* p, std::int64_t now) const noexcept;
  void ask_to_give_way(processor* p, std::int64_t now) noexcept;
  void end_slice(processor* p, std::uint32_t tick, std::int64_t now) noexcept;
  void look_for_sleeper(processor* p, std::uint32_t tick, std::int64_t now) noexcept;
  void come_back_at(std::int64_t when) noexcept {
    if (when < next_event_) next_event_ = when;
  }

  std::int64_t next_event_ = 0;
  bool any_hogged_ = false;
  std::uint64_t socket_polls_ = 0;       // how often somebody had polled at the last look at sockets
  // One is ready, all Ps are busy, and nobody polls, or who waited for it is in the global queue; 0: not so.
  std::int64_t socket_ready_since_ = 0;
  processor* serves_socket_ = nullptr;   // who has run for the longest then
};

// When a P that is hogged may be taken from who runs there for the sake of a timer: for who began at `began`, after somebody
// had to be stopped at `taken`.
std::int64_t least_slice_of_hog(std::int64_t began, std::int64_t taken) noexcept;

// Timers or sockets are waited for; who only waits for the end of a slice need not know it to the millisecond.
bool is_hasty() noexcept;

// Who does not give way can be stopped.
bool may_preempt() noexcept;

}  // namespace weft::sched
