// A channel, and what a send or a receive does to it under its lock.
//
// Invariants, whenever the lock is free:
//   - count elements are in the ring, count <= capacity; an unbuffered channel has no ring
//   - receivers wait only if count == 0, senders only if count == capacity; both at once only as waiters of the same
//     select, which does not meet itself, or as waiters whose select has been claimed elsewhere and which are about to
//     go
//   - closed: nobody waits
// Waiters are served first come, first served. One that has been taken from its queue (and claimed, if it belongs to a
// select) is in the hands of the taker: it stays parked, and its frame valid, until the taker calls ready(). So the
// element is moved between the two frames without the lock.
//
// A send or receive has two steps. begin_…(), under the lock, decides: it takes the peer, or a place in the ring.
// finish_…(), without the lock, moves the element and wakes the peer. Bits that go through the ring are copied in the
// first step. Objects are not (turns.h). The order of elements is the order in which places were given out, so it does
// not depend on how long moves take.
// Rejected: moving objects under the lock (deadlocks if a move calls into weft); a list of filled places to which a
// sender adds its own once it is filled (senders overtake each other, and a place being emptied makes try_send fail
// while size() is below capacity()).
//
// A channel whose values come from the clock (time_channel.h) has neither ring nor senders: `has_clock` is set, and the places
// that wonder whether there is an element, or change who waits for one, ask it.
//
// After ready(), and after the unlock if there is no peer and the elements are bits, the channel is not touched any
// more: its last handle may go with the peer.
#pragma once

#include <weft/detail/chan_core.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/delay.h"
#include "chan/select_state.h"
#include "chan/turns.h"
#include "sched/home_lock.h"
#include "sched/park_in_section.h"

namespace weft::chans {

using detail::chan_core;
using detail::element_ops;
using detail::goroutine;
using waiter = detail::chan_waiter;
using sched::machine;

// Whether a waiter that is first in its queue is the caller's now. If its select has been claimed elsewhere, it is not.
inline bool claims(waiter& first) noexcept { return first.select == nullptr || first.select->claim(first.index); }

class wait_queue {
 public:
  // A hint without the lock.
  bool empty() const noexcept { return first_.load(std::memory_order_acquire) == nullptr; }
  waiter* front() const noexcept { return first_.load(std::memory_order_relaxed); }

  void push(waiter& w) noexcept {
    w.next = nullptr;
    w.previous = last_;
    w.queued = true;
    (last_ != nullptr ? last_->next = &w : set_first(&w));
    last_ = &w;
  }

  void remove(waiter& w) noexcept {
    (w.previous != nullptr ? w.previous->next = w.next : set_first(w.next));
    (w.next != nullptr ? w.next->previous : last_) = w.previous;
    w.queued = false;
  }

  void pop_front(waiter& w) noexcept {
    set_first(w.next);
    (w.next != nullptr ? w.next->previous : last_) = nullptr;
    w.queued = false;
  }

  // All of them, in a list through `next`. Nobody waits in a select.
  waiter* detach() noexcept {
    last_ = nullptr;
    waiter* const all = front();
    set_first(nullptr);
    return all;
  }

  // The first one that has not been claimed elsewhere; it is the caller's now.
  waiter* take() noexcept {
    while (waiter* w = front()) {
      pop_front(*w);
      if (claims(*w)) return w;
      drop(*w);
    }
    return nullptr;
  }

  // Whether take() would find somebody now, forgetting those that have been claimed elsewhere.
  bool has_open() noexcept {
    while (waiter* w = front()) {
      if (w->select == nullptr || w->select->is_open()) return true;
      pop_front(*w);
      drop(*w);
    }
    return false;
  }

  // Whether `w` of a select that was claimed elsewhere has been taken out by another. If so, neither the channel nor its lock
  // has anything to do with it any more, and the channel may be gone.
  static bool was_dropped(waiter& w) noexcept {
    return std::atomic_ref(w.dropped).load(std::memory_order_acquire);  // [chan.drop]
  }

 private:
  // The last touch: the select may return now. [chan.drop] release: all that happened under the lock until now
  static void drop(waiter& w) noexcept { std::atomic_ref(w.dropped).store(true, std::memory_order_release); }

  waiter* set_first(waiter* w) noexcept {
    first_.store(w, std::memory_order_release);
    return w;
  }

  std::atomic<waiter*> first_{nullptr};
  waiter* last_ = nullptr;
};

struct channel;

// Of a channel with a clock; but for is_due(), with the lock held.
bool is_due(const channel& c) noexcept;
bool take_due(channel& c, void* to) noexcept;   // false: not due
void waiters_changed(channel& c) noexcept;      // after somebody has joined or left `receivers`
void destroy_time_channel(channel& c) noexcept;

struct channel : chan_core {
  sched::home_lock lock;
  std::atomic<bool> closed{false};  // this and all below: written under the lock
  std::atomic<bool> has_met_select{false};  // one has waited here. Changed with the lock
  bool has_clock = false;           // its values come from the clock: it is a time_channel. Never changes
  std::size_t head = 0;             // where the next element is taken
  std::size_t tail = 0;             // where the next element is put
  std::size_t room_for_bits = 0;    // capacity; but 0 if the elements are objects or the channel is closed
  wait_queue receivers;
  wait_queue senders;
  std::byte* ring = nullptr;
  const element_ops* ops = nullptr;             // null: bits
  std::atomic<std::uint32_t>* turns = nullptr;  // objects: one a place
  turn_waiter* turn_waiters = nullptr;          // objects: those who are parked until their turn, in the order of their coming
  std::uint32_t head_lap = 0;
  std::uint32_t tail_lap = 0;
  std::uint32_t alignment = 0;

  void* place(std::size_t i) const noexcept { return ring + i * element_size; }
  void begin_head_lap() noexcept { head = 0, ++head_lap; }
  void begin_tail_lap() noexcept { tail = 0, ++tail_lap; }
  void advance_head() noexcept {
    if (++head == capacity) begin_head_lap();
  }
  void advance_tail() noexcept {
    if (++tail == capacity) begin_tail_lap();
  }
  void set_count(std::size_t n) noexcept { count.store(n, std::memory_order_release); }

  // Without the lock. "No" is exact for some moment during the call: the ring is full (empty) when `count` is read, and
  // as `closed` never goes back, the channel was not closed then. "Yes" is a guess.
  bool may_send() const noexcept {
    return count.load(std::memory_order_acquire) < capacity || !receivers.empty() ||
           closed.load(std::memory_order_acquire);
  }
  bool may_recv() const noexcept { return may_recv_simply() || (has_clock && is_due(*this)); }
  bool may_recv_simply() const noexcept {  // without a clock
    return count.load(std::memory_order_acquire) != 0 || !senders.empty() || closed.load(std::memory_order_acquire);
  }
};
static_assert(sizeof(channel) + 16 <= 192, "an unbuffered channel of ints, with what malloc adds");

inline channel& channel_of(chan_core* c) noexcept { return *static_cast<channel*>(c); }

[[gnu::always_inline]] inline void copy_bits(void* to, const void* from, std::uint32_t size) noexcept {
  if (size == 8) [[likely]] {
    std::memcpy(to, from, 8);
  } else if (size == 4) {
    std::memcpy(to, from, 4);
  } else if (size != 0) {
    std::memcpy(to, from, size);
  }
}

enum class verdict { blocked, done, closed };

// ---- under the lock ----

[[gnu::always_inline]] inline verdict begin_send(channel& c, void* value, transfer& t) noexcept {
  if (c.closed.load(std::memory_order_relaxed)) [[unlikely]]
    return verdict::closed;
  if ((t.peer = c.receivers.take()) != nullptr) return verdict::done;
  const std::size_t count = c.count.load(std::memory_order_relaxed);
  if (count == c.capacity) return verdict::blocked;
  if (c.ops == nullptr) {
    copy_bits(c.place(c.tail), value, c.element_size);
  } else {
    t.has_place = true;
    t.place = c.tail;
    t.lap = c.tail_lap;
  }
  c.advance_tail();
  c.set_count(count + 1);
  return verdict::done;
}

[[gnu::always_inline]] inline verdict begin_recv(channel& c, void* to, transfer& t) noexcept {
  const std::size_t count = c.count.load(std::memory_order_relaxed);
  if (count == 0) {
    if ((t.peer = c.senders.take()) != nullptr) return verdict::done;  // unbuffered
    if (c.has_clock && take_due(c, to)) return verdict::done;
    return c.closed.load(std::memory_order_relaxed) ? verdict::closed : verdict::blocked;
  }
  if (c.ops == nullptr) {
    copy_bits(to, c.place(c.head), c.element_size);
  } else {
    t.has_place = true;
    t.place = c.head;
    t.lap = c.head_lap;
  }
  c.advance_head();
  // A full ring with senders waiting: the first of them gets the place that became free, which is the last in line.
  if ((t.peer = c.senders.take()) != nullptr) {
    if (c.ops == nullptr) copy_bits(c.place(c.tail), t.peer->value, c.element_size);
    c.advance_tail();
  } else {
    c.set_count(count - 1);
  }
  return verdict::done;
}

// The usual case of begin_…() alone: bits in one or two registers, nobody waits, and the ring has room (or an element).
[[gnu::always_inline]] inline bool copy_few_bits(void* to, const void* from, std::uint32_t size) noexcept {
  if (size == 8) [[likely]] {
    std::memcpy(to, from, 8);
  } else if (size == 16) {
    std::memcpy(to, from, 16);
  } else if (size == 4) {
    std::memcpy(to, from, 4);
  } else {
    return false;
  }
  return true;
}

[[gnu::always_inline]] inline bool put_few_bits(channel& c, const void* value) noexcept {
  const std::size_t count = c.count.load(std::memory_order_relaxed);
  if (count >= c.room_for_bits || c.receivers.front() != nullptr) return false;
  const std::size_t tail = c.tail;
  if (!copy_few_bits(c.place(tail), value, c.element_size)) [[unlikely]] return false;
  c.tail = tail + 1;
  if (tail + 1 == c.capacity) c.begin_tail_lap();
  c.set_count(count + 1);
  return true;
}

[[gnu::always_inline]] inline bool take_few_bits(channel& c, void* to) noexcept {
  const std::size_t count = c.count.load(std::memory_order_relaxed);
  if (count == 0 || c.ops != nullptr || c.senders.front() != nullptr) return false;
  const std::size_t head = c.head;
  if (!copy_few_bits(to, c.place(head), c.element_size)) [[unlikely]] return false;
  c.head = head + 1;
  if (head + 1 == c.capacity) c.begin_head_lap();
  c.set_count(count - 1);
  return true;
}

// ---- the lock is released ----

// Its wait is over. The peer, and its frame, may be gone after this.
[[gnu::always_inline]] inline void serve(waiter* peer) noexcept {
  peer->delivered = true;
  detail::ready(peer->g);
}
// `m` is null on a plain thread.
[[gnu::always_inline]] inline void serve_in_section(machine* m, waiter* peer) noexcept {
  if (m == nullptr) [[unlikely]] return serve(peer);
  peer->delivered = true;
  sched::ready_in_section(m, peer->g);
}

// Hooks of who waits with the lock held.
void release_lock(machine*, goroutine*, const gmp::after_switch& self) noexcept;
bool release_lock_of_thread(goroutine*, void* c) noexcept;

// Objects, outside of any section: these run foreign code.
void move_in(channel& c, void* value, const transfer& t);
void move_out(channel& c, void* to, const transfer& t);

// Releases the lock, ends the section, and completes what begin_…() has begun.
[[gnu::always_inline]] inline void finish_send(channel& c, machine* m, void* value, const transfer& t) {
  if (c.ops == nullptr) [[likely]] {
    const std::uint32_t size = c.element_size;
    c.lock.unlock();
    if (t.peer != nullptr) {
      copy_bits(t.peer->value, value, size);
      serve_in_section(m, t.peer);
    }
    if (m != nullptr) sched::leave(m);
    return;
  }
  c.lock.unlock();
  if (m != nullptr) sched::leave_quietly(m);
  move_in(c, value, t);
}

[[gnu::always_inline]] inline void finish_recv(channel& c, machine* m, void* to, const transfer& t) {
  if (c.ops == nullptr) [[likely]] {
    const std::uint32_t size = c.capacity == 0 ? c.element_size : 0;  // else it is copied already
    c.lock.unlock();
    if (t.peer != nullptr) {
      copy_bits(to, t.peer->value, size);
      serve_in_section(m, t.peer);
    }
    if (m != nullptr) sched::leave(m);
    return;
  }
  c.lock.unlock();
  if (m != nullptr) sched::leave_quietly(m);
  move_out(c, to, t);
}

// ---- the usual cases of goroutines, whole; with the lock held, in the outermost section, both of which end ----

// Bits, from one frame to the other: `peer` is the first in its queue, and claimed.
[[gnu::always_inline]] inline void hand_over(channel& c, machine* m, waiter* peer, const void* value) noexcept {
  const std::uint32_t size = c.element_size;
  c.receivers.pop_front(*peer);
  c.lock.unlock();
  copy_bits(peer->value, value, size);
  serve_in_section(m, peer);
  sched::leave_outermost(m);
}

[[gnu::always_inline]] inline void take_over(channel& c, machine* m, waiter* peer, void* to) noexcept {
  const std::uint32_t size = c.element_size;
  c.senders.pop_front(*peer);
  c.lock.unlock();
  copy_bits(to, peer->value, size);
  serve_in_section(m, peer);
  sched::leave_outermost(m);
}

[[noreturn, gnu::cold]] void throw_send_on_closed();
[[noreturn, gnu::cold, gnu::noinline]] void block_for_ever(detail::wait_reason why) noexcept;

}  // namespace weft::chans
