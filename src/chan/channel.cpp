#include "chan/channel.h"

#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include <weft/go.h>

#include "sched/finishing.h"
#include "sched/lifecycle.h"

namespace weft::chans {

void release_lock(machine*, goroutine*, const gmp::after_switch& self) noexcept {
  static_cast<channel*>(self.arg)->lock.unlock();  // the waiter can be found: its frame may be gone from here on
}

bool release_lock_of_thread(goroutine*, void* c) noexcept {
  static_cast<channel*>(c)->lock.unlock();
  return true;
}

namespace {

waiter waiter_for(goroutine* g, void* value) noexcept {
  waiter w;
  w.g = g;
  w.value = value;
  w.select = nullptr;
  w.delivered = false;
  return w;
}

// In the outermost section of `m`.
[[gnu::noinline]] bool wait_in(wait_queue& queue, channel& c, machine* m, void* value, detail::wait_reason why) noexcept {
  waiter w = waiter_for(m->curg, value);
  queue.push(w);
  if (c.has_clock) [[unlikely]] waiters_changed(c);
  sched::park_in_section(m, &release_lock, &c, why);
  return w.delivered;
}

bool wait_on_thread(wait_queue& queue, channel& c, void* value, detail::wait_reason why) noexcept {
  waiter w = waiter_for(detail::self(), value);
  queue.push(w);
  if (c.has_clock) waiters_changed(c);
  detail::park(&release_lock_of_thread, &c, why);
  return w.delivered;
}

[[gnu::always_inline]] inline void end_section(channel& c, machine* m) noexcept {
  c.lock.unlock();
  if (m != nullptr) sched::leave(m);
}

// All of these: with the lock held, in the section of `m`; both end here.

[[gnu::always_inline]] inline void wait_to_send(channel& c, machine* m, void* value) {
  constexpr auto why = detail::wait_reason::chan_send;
  const bool sent = m != nullptr ? wait_in(c.senders, c, m, value, why) : wait_on_thread(c.senders, c, value, why);
  if (!sent) [[unlikely]] throw_send_on_closed();
}

bool wait_to_recv(channel& c, machine* m, void* to) noexcept {
  constexpr auto why = detail::wait_reason::chan_receive;
  return m != nullptr ? wait_in(c.receivers, c, m, to, why) : wait_on_thread(c.receivers, c, to, why);
}

[[gnu::noinline]] void send_locked(channel& c, machine* m, void* value) {
  transfer t;
  switch (begin_send(c, value, t)) {
    case verdict::done:
      return finish_send(c, m, value, t);
    case verdict::blocked:
      return wait_to_send(c, m, value);
    case verdict::closed:
      end_section(c, m);
      break;
  }
  throw_send_on_closed();
}

[[gnu::noinline]] bool recv_locked(channel& c, machine* m, void* to) noexcept {
  transfer t;
  switch (begin_recv(c, to, t)) {
    case verdict::done:
      finish_recv(c, m, to, t);
      return true;
    case verdict::blocked:
      if (c.has_clock && m == nullptr && sched::sched.life.load(std::memory_order_acquire) != sched::phase::running) {
        // Nobody would wake this thread: timers stand still while the runtime does.
        c.lock.unlock();
        sched::ensure_started();
        return detail::channel_recv(&c, to);
      }
      return wait_to_recv(c, m, to);
    case verdict::closed:
      break;
  }
  end_section(c, m);
  return false;
}

// ---- the usual cases of goroutines, each with a short way of its own; all in the outermost section ----

// With the lock held: not through the ring.
[[gnu::noinline]] void send_past_ring(channel& c, machine* m, void* value) {
  waiter* peer = c.receivers.front();
  if (c.ops == nullptr && peer != nullptr && claims(*peer)) return hand_over(c, m, peer, value);
  if (peer == nullptr && c.count.load(std::memory_order_relaxed) == c.capacity && !c.closed.load(std::memory_order_relaxed)) {
    return wait_to_send(c, m, value);
  }
  send_locked(c, m, value);
}

[[gnu::noinline]] bool recv_past_ring(channel& c, machine* m, void* to) noexcept {
  waiter* peer = c.senders.front();
  if (c.ops == nullptr && c.capacity == 0 && peer != nullptr && claims(*peer)) {
    take_over(c, m, peer, to);
    return true;
  }
  if (peer == nullptr && c.count.load(std::memory_order_relaxed) == 0 && !c.closed.load(std::memory_order_relaxed) &&
      !c.has_clock) {
    return wait_in(c.receivers, c, m, to, detail::wait_reason::chan_receive);
  }
  return recv_locked(c, m, to);
}

// The lock is somebody's. On the other P many items may go through a buffer while we wait for a microsecond, and then many
// through ours, before the channel's lines have to move again. Where each item is waited for, or a select holds several
// locks, that would be too long.
void lock_late(channel& c, machine* m) noexcept WEFT_ACQUIRE(c.lock) {
  constexpr int patient = 64;
  if (c.capacity != 0 && !c.has_met_select.load(std::memory_order_relaxed)) {
    c.lock.lock_late(m, patient);
  } else {
    c.lock.lock_late(m);
  }
}

[[gnu::noinline]] void send_later(channel& c, machine* m, void* value) {
  lock_late(c, m);
  send_locked(c, m, value);
}

[[gnu::noinline]] bool recv_later(channel& c, machine* m, void* to) noexcept {
  lock_late(c, m);
  return recv_locked(c, m, to);
}

// From wherever, to whatever.
[[gnu::noinline]] void send_anyhow(chan_core* core, void* value) {
  if (core == nullptr) block_for_ever(detail::wait_reason::chan_send_nil);
  channel& c = channel_of(core);
  machine* m = sched::enter();
  c.lock.lock(m);
  send_locked(c, m, value);
}

[[gnu::noinline]] bool recv_anyhow(chan_core* core, void* to) noexcept {
  if (core == nullptr) block_for_ever(detail::wait_reason::chan_receive_nil);
  channel& c = channel_of(core);
  machine* m = sched::enter();
  c.lock.lock(m);
  return recv_locked(c, m, to);
}

bool is_over_aligned(std::size_t alignment) noexcept { return alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__; }

constexpr std::size_t round_up(std::size_t n, std::size_t alignment) noexcept {
  return (n + alignment - 1) / alignment * alignment;
}

// Takes everybody out of the queue, into a list through `next` that ends at `tail`.
waiter** take_all(wait_queue& queue, waiter** tail) noexcept {
  while (waiter* w = queue.take()) {
    w->next = nullptr;
    w->delivered = false;
    *tail = w;
    tail = &w->next;
  }
  return tail;
}

// All who wait, in such a list; with the lock held. There may be a million of them, each a cache miss or two. Those that do not
// wait in a select are nobody else's business, so that the list is as it should be.
waiter* take_everybody(channel& c) noexcept {
  if (!c.has_met_select.load(std::memory_order_relaxed)) return !c.receivers.empty() ? c.receivers.detach() : c.senders.detach();
  waiter* all = nullptr;
  take_all(c.senders, take_all(c.receivers, &all));
  return all;
}

// False: it was closed. True: it is now, and these are to be woken.
bool begin_close(channel& c, waiter*& woken) noexcept {
  const sched::finishing_quietly section;
  c.lock.lock(section.m());
  const bool is_first = !c.closed.load(std::memory_order_relaxed);
  if (is_first) {
    c.closed.store(true, std::memory_order_release);
    c.room_for_bits = 0;
    woken = take_everybody(c);
  }
  c.lock.unlock();
  return is_first;
}

// The channel dies under somebody who waits: a frozen goroutine whose handle was a reference. It must not come back to
// it.
void forget_waiters(wait_queue& queue) noexcept {
  while (waiter* w = queue.front()) {
    queue.remove(*w);
    if (w->select != nullptr) static_cast<detail::select_slot*>(w)->channel = nullptr;
  }
}

}  // namespace

void move_in(channel& c, void* value, const transfer& t) {
  if (t.peer == nullptr) return send_through_ring(c, value, t);
  c.ops->deliver(t.peer->value, value);
  serve(t.peer);
}

void move_out(channel& c, void* to, const transfer& t) {
  if (t.has_place) return recv_through_ring(c, to, t);
  c.ops->deliver(to, t.peer->value);
  serve(t.peer);
}

void throw_send_on_closed() { throw channel_error("send on closed channel"); }

void block_for_ever(detail::wait_reason why) noexcept {
  for (;;) detail::park([](goroutine*, void*) { return true; }, nullptr, why);
}

}  // namespace weft::chans

namespace weft::detail {

using namespace weft::chans;

chan_core* make_channel(std::size_t capacity, std::size_t size, std::size_t alignment, const element_ops* ops) {
  const std::size_t offset = round_up(sizeof(channel), alignment);
  const std::size_t each = size + (ops != nullptr ? sizeof(std::atomic<std::uint32_t>) : 0);
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (capacity > most || (each != 0 && capacity > (most - offset - alignof(channel)) / each)) {
    throw std::length_error("weft::chan: capacity out of range");
  }
  const std::size_t turns_at = round_up(offset + capacity * size, alignof(std::atomic<std::uint32_t>));
  const std::size_t bytes = turns_at + capacity * (each - size);
  void* memory =
      is_over_aligned(alignment) ? ::operator new(bytes, std::align_val_t(alignment)) : ::operator new(bytes);
  auto* c = ::new (memory) channel;
  c->element_size = static_cast<std::uint32_t>(size);
  c->capacity = capacity;
  c->alignment = static_cast<std::uint32_t>(alignment);
  c->ring = static_cast<std::byte*>(memory) + offset;
  c->ops = ops;
  c->room_for_bits = ops == nullptr ? capacity : 0;
  if (ops != nullptr && capacity != 0) {
    c->turns = ::new (static_cast<std::byte*>(memory) + turns_at) std::atomic<std::uint32_t>[capacity] {};
  }
  return c;
}

void destroy_channel(chan_core* core) noexcept {
  channel& c = channel_of(core);
  if (!c.receivers.empty() || !c.senders.empty()) [[unlikely]] {
    forget_waiters(c.receivers);
    forget_waiters(c.senders);
  }
  if (c.ops != nullptr) {
    // A sender that was frozen with its place given out, and not filled, has left nothing there.
    for (std::size_t n = c.count.load(std::memory_order_relaxed); n > 0; --n) {
      const bool is_filled = is_turn(c.turns[c.head], turn_to_take(c.head_lap));
      if (is_filled) c.ops->destroy(c.place(c.head));
      c.advance_head();
    }
  }
  if (c.has_clock) return destroy_time_channel(c);
  const std::size_t alignment = c.alignment;
  c.~channel();
  if (is_over_aligned(alignment)) {
    ::operator delete(&c, std::align_val_t(alignment));
  } else {
    ::operator delete(&c);
  }
}

// The most usual case, through the ring, as short as it can be: what else there is gets called last, so that this needs no
// registers saved.

void channel_send(chan_core* core, void* value) {
  machine* m = nullptr;
  if (core == nullptr || (m = sched::enter_simply()) == nullptr) [[unlikely]] return send_anyhow(core, value);
  channel& c = channel_of(core);
  if (!c.lock.try_lock(m)) [[unlikely]] return send_later(c, m, value);
  if (!put_few_bits(c, value)) return send_past_ring(c, m, value);
  c.lock.unlock();
  sched::leave_outermost(m);
}

bool channel_recv(chan_core* core, void* to) noexcept {
  machine* m = nullptr;
  if (core == nullptr || (m = sched::enter_simply()) == nullptr) [[unlikely]] return recv_anyhow(core, to);
  channel& c = channel_of(core);
  if (!c.lock.try_lock(m)) [[unlikely]] return recv_later(c, m, to);
  if (!take_few_bits(c, to)) return recv_past_ring(c, m, to);
  c.lock.unlock();
  sched::leave_outermost(m);
  return true;
}

bool channel_try_send(chan_core* core, void* value) {
  if (core == nullptr) return false;
  channel& c = channel_of(core);
  if (!c.may_send()) return false;
  machine* m = sched::enter();
  c.lock.lock(m);
  transfer t;
  const verdict v = begin_send(c, value, t);
  if (v == verdict::done) {
    finish_send(c, m, value, t);
    return true;
  }
  end_section(c, m);
  if (v == verdict::closed) throw_send_on_closed();
  return false;
}

recv_status channel_try_recv(chan_core* core, void* to) noexcept {
  if (core == nullptr) return recv_status::empty;
  channel& c = channel_of(core);
  if (!c.may_recv()) return recv_status::empty;
  machine* m = sched::enter();
  c.lock.lock(m);
  transfer t;
  const verdict v = begin_recv(c, to, t);
  if (v == verdict::done) {
    finish_recv(c, m, to, t);
    return recv_status::ok;
  }
  end_section(c, m);
  return v == verdict::closed ? recv_status::closed : recv_status::empty;
}

void channel_close(chan_core* core) {
  if (core == nullptr) throw channel_error("close of nil channel");
  if (!channel_close_quietly(core)) throw channel_error("close of closed channel");
  checkpoint();
}

bool channel_close_quietly(chan_core* core) noexcept {
  waiter* woken = nullptr;
  if (!begin_close(channel_of(core), woken)) return false;
  // Not in one section: that would be too long.
  while (woken != nullptr) {
    const sched::finishing_quietly section;
    waiter* const w = std::exchange(woken, woken->next);
    if (woken != nullptr) base::prefetch(woken);
    gmp::fetch_frames(*w->g);
    ready(w->g);
  }
  return true;
}

}  // namespace weft::detail
