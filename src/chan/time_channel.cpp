#include "chan/time_channel.h"

#include <weft/detail/time_channel.h>

#include <limits>

#include "gmp/current.h"
#include "os/clock.h"
#include "sched/lifecycle.h"
#include "sched/timers.h"

namespace weft::chans {
namespace {

// The first of when + period, when + 2 * period, … that lies after `now`.
std::int64_t next_tick(std::int64_t when, std::int64_t period, std::int64_t now) noexcept {
  std::int64_t step = 0, next = 0;
  if (__builtin_mul_overflow(period, 1 + (now - when) / period, &step) || __builtin_add_overflow(when, step, &next)) {
    return detail::no_deadline;
  }
  return next;
}

void give_time(void* to, std::int64_t ns) noexcept {
  const detail::time_value value{std::chrono::nanoseconds(ns)};
  std::memcpy(to, &value, sizeof value);
}

time_channel& time_channel_of(channel& c) noexcept { return static_cast<time_channel&>(c); }

}  // namespace

time_channel::time_channel() noexcept : node(&on_timer, this) {
  element_size = sizeof(detail::time_value);
  alignment = alignof(detail::time_value);
  has_clock = true;
}

std::int64_t time_channel::due_now() const noexcept {
  const std::int64_t when = due.load(std::memory_order_relaxed);
  return when != 0 && when <= os::now_ns() ? when : 0;
}

void time_channel::advance(std::int64_t now) noexcept {
  const std::int64_t when = due.load(std::memory_order_relaxed);
  due.store(period == 0 ? 0 : next_tick(when, period, now), std::memory_order_release);  // [time.due]
}

void time_channel::keep_armed() noexcept {
  const std::int64_t wanted = receivers.empty() ? 0 : due.load(std::memory_order_relaxed);
  if (wanted == armed_for) return;
  armed_for = wanted;
  if (wanted != 0) {
    sched::start_timer(node, wanted, 0, ++seq);
  } else {
    sched::stop_timer(node);  // if it was too late for that, the callback finds nothing to do
  }
}

// On g0. Serves one waiter for each value that there is: a ticker's next one lies in the future, so one.
void time_channel::on_timer(void* self, std::uint64_t seq, std::int64_t) noexcept {
  auto& c = *static_cast<time_channel*>(self);
  waiter* served = nullptr;
  c.lock.lock(gmp::current_machine());
  if (seq == c.seq) c.armed_for = 0;
  if (const std::int64_t when = c.due_now(); when != 0 && (served = c.receivers.take()) != nullptr) {
    give_time(served->value, when);
    c.advance(os::now_ns());
  }
  c.keep_armed();
  c.lock.unlock();
  if (served != nullptr) serve(served);
}

bool time_channel::set(std::int64_t when, std::int64_t every) noexcept {
  machine* m = sched::enter();
  lock.lock(m);
  const bool was_set = due.load(std::memory_order_relaxed) != 0;
  due.store(when, std::memory_order_release);  // [time.due]
  period = every;
  keep_armed();
  lock.unlock();
  if (m != nullptr) sched::leave(m);
  return was_set;
}

bool is_due(const channel& c) noexcept {
  const std::int64_t when = static_cast<const time_channel&>(c).due.load(std::memory_order_acquire);  // [time.due]
  return when != 0 && when <= os::now_ns();
}

bool take_due(channel& c, void* to) noexcept {
  time_channel& self = time_channel_of(c);
  const std::int64_t when = self.due_now();
  if (when == 0) return false;
  give_time(to, when);
  self.advance(os::now_ns());
  self.keep_armed();
  return true;
}

void waiters_changed(channel& c) noexcept { time_channel_of(c).keep_armed(); }

// Nobody waits and nobody has a handle, but a callback may be on its way.
void destroy_time_channel(channel& c) noexcept {
  time_channel& self = time_channel_of(c);
  sched::stop_timer_sync(self.node);
  delete &self;
}

}  // namespace weft::chans

namespace weft::detail {

chan_core* make_time_channel(std::int64_t when, std::int64_t period) {
  sched::ensure_started();  // whoever waits is woken by an M
  auto* c = new chans::time_channel;
  c->due.store(when, std::memory_order_relaxed);
  c->period = period;
  return c;
}

bool set_time_channel(chan_core* c, std::int64_t when, std::int64_t period) noexcept {
  return static_cast<chans::time_channel*>(c)->set(when, period);
}

}  // namespace weft::detail
