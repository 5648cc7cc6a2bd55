// The cases of a select, one at a time: whether one can go, which of those that can is chosen, and doing it.
#pragma once

#include <weft/detail/select_core.h>

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "chan/channel.h"

namespace weft::chans {

using detail::case_kind;
using detail::select_slot;
using detail::stop_waiter;

constexpr std::uint32_t nobody = 0xffffffff;

[[gnu::noinline]] inline std::uint32_t random_below_on_thread(std::uint32_t bound) noexcept {
  thread_local base::random generator(reinterpret_cast<std::uintptr_t>(&generator));
  return generator.below(bound);
}

inline std::uint32_t random_below(machine* m, std::uint32_t bound) noexcept {
  return m != nullptr ? m->rng.below(bound) : random_below_on_thread(bound);
}

// Chooses one of the cases offered to it, each with the same probability.
class choice {
 public:
  explicit choice(machine* m) noexcept : m_(m) {}
  void offer(std::uint32_t i) noexcept {
    if (++offered_ == 1 || random_below(m_, offered_) == 0) chosen_ = i;
  }
  std::uint32_t chosen() const noexcept { return chosen_; }  // nobody: none was offered

 private:
  machine* const m_;
  std::uint32_t offered_ = 0;
  std::uint32_t chosen_ = nobody;
};

inline bool stop_requested(const select_slot& s) noexcept {
  return static_cast<stop_waiter*>(s.value)->token.stop_requested();
}

// Cases that can be looked at without a call: sends and receives of channels without a clock, and those of no channel.
[[gnu::always_inline]] inline bool is_simple(const select_slot& s) noexcept {
  return s.channel != nullptr ? !channel_of(s.channel).has_clock : s.kind != case_kind::stop;
}

// Without locks: "no" is exact for this channel alone, "yes" is a guess.
[[gnu::always_inline]] inline bool may_go_simply(const select_slot& s) noexcept {
  if (s.channel == nullptr) return false;
  const channel& c = channel_of(s.channel);
  return s.kind == case_kind::recv ? c.may_recv_simply() : c.may_send();
}
// The same for those that are not simple too.
[[gnu::always_inline]] inline bool may_go(const select_slot& s) noexcept {
  if (is_simple(s)) return may_go_simply(s);
  return s.kind == case_kind::stop ? stop_requested(s) : channel_of(s.channel).may_recv();
}

// With the channel locked. A "yes" can still be spoilt by who claims the peer's select on another channel.
inline bool can_go(const select_slot& s) noexcept {
  if (!may_go(s)) return false;
  if (s.kind == case_kind::stop) return true;
  channel& c = channel_of(s.channel);
  if (c.closed.load(std::memory_order_relaxed)) return true;
  const std::size_t count = c.count.load(std::memory_order_relaxed);
  if (s.kind == case_kind::recv) return count != 0 || c.senders.has_open() || (c.has_clock && is_due(c));
  return count < c.capacity || c.receivers.has_open();
}

[[gnu::always_inline]] inline verdict begin(select_slot& s, transfer& t) noexcept {
  channel& c = channel_of(s.channel);
  return s.kind == case_kind::recv ? begin_recv(c, s.value, t) : begin_send(c, s.value, t);
}

// begin() said v; only this channel is locked. Ends the section.
[[gnu::always_inline]] inline void finish(select_slot& s, machine* m, verdict v, const transfer& t) {
  channel& c = channel_of(s.channel);
  s.delivered = v == verdict::done;
  if (v == verdict::done)
    return s.kind == case_kind::recv ? finish_recv(c, m, s.value, t) : finish_send(c, m, s.value, t);
  c.lock.unlock();
  if (m != nullptr) sched::leave(m);
  if (s.kind == case_kind::send) throw_send_on_closed();
}

}  // namespace weft::chans
