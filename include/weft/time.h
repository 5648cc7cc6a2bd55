// Sleeping, timers and tickers. Goroutines and plain threads may use all of it.
//
// Timers follow the steady clock, in nanoseconds. What is received from a timer's channel is the time that it was due; the
// time that it is now is steady_clock's to say. Durations of any unit will do; one that is too long to be counted in
// nanoseconds (292 years) never ends, one of 0 or less has ended at once.
//
// The channels of timers are synchronous, as in Go since 1.23: a value is there if its time has come, and is gone after
// stop(), reset() or the end of the timer, received or not. So stop() and reset() need no draining, and nobody ever
// receives a value of an earlier setting.
//
// A timer that nobody waits on costs the memory of its channel and nothing else: it is in no queue, wakes nobody when it
// expires, and goes with its last handle. After run() or shutdown() timers stand still like the goroutines: also
// for a plain thread that waits on one. (Its sleeps, and the time limits of its other waits, do not.)
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <weft/chan.h>
#include <weft/detail/time.h>
#include <weft/detail/time_channel.h>

namespace weft {

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

namespace detail {

void sleep_for_ns(std::int64_t ns);
void sleep_until_ns(std::int64_t deadline_ns);

inline recv_chan<time_point> share_time_channel(const chan_ptr& c) {
  recv_chan<time_point> handle = nullptr;
  chan_access::of(handle) = c;
  return handle;
}

[[noreturn]] void throw_bad_period();

template <class Rep, class Period>
std::int64_t checked_period(const std::chrono::duration<Rep, Period>& d) {
  const std::int64_t ns = to_ns(d);
  if (ns <= 0) throw_bad_period();
  return ns;
}

}  // namespace detail

// Parks the goroutine (on a plain thread: the thread) for at least this long.
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& d) {
  detail::sleep_for_ns(detail::to_ns(d));
}

// Until a time of steady_clock or system_clock (any clock with now()). If such a clock is set back meanwhile, it sleeps on until the
// clock says so; if it is set forward, it sleeps as long as it was to at the beginning.
template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& t) {
  do {
    detail::sleep_until_ns(detail::deadline_at(t));
  } while (!detail::has_come(t));
}

// A channel on which a time can be received once, when it has come.
template <class Rep, class Period>
[[nodiscard]] recv_chan<time_point> after(const std::chrono::duration<Rep, Period>& d) {
  return detail::share_time_channel(detail::chan_ptr(detail::make_time_channel(detail::deadline_after(d), 0)));
}

// One event in the future: a time on its channel, or, if it comes from after_func(), the call of a function. Members may
// be called by several at the same time, but for moves.
class timer {
 public:
  template <class Rep, class Period>
  explicit timer(const std::chrono::duration<Rep, Period>& d)
      : channel_(detail::make_time_channel(detail::deadline_after(d), 0)) {}

  timer(timer&& other) noexcept
      : channel_(std::move(other.channel_)), function_(std::exchange(other.function_, nullptr)) {}
  timer& operator=(timer&& other) noexcept {
    timer old(std::move(other));
    std::swap(channel_, old.channel_);
    std::swap(function_, old.function_);
    return *this;
  }
  // Stops it; but not one of after_func(), whose function is called all the same.
  ~timer() {
    if (channel_.get() != nullptr) end(channel_.get());
    if (function_ != nullptr) detail::func_timer::release(function_);
  }

  // Nil if it is one of after_func().
  recv_chan<time_point> channel() const { return detail::share_time_channel(channel_); }

  // True: it was active, and nothing will come of it any more. A channel's timer is active until its value has been
  // received, even if its time has come; one of after_func() until its goroutine has been started (not: has ended).
  bool stop() noexcept {
    if (channel_.get() != nullptr) return detail::set_time_channel(channel_.get(), 0, 0);
    return function_ != nullptr && detail::stop_func_timer(function_);
  }

  // As stop(), and it will expire after `d` from now, as if it were new. Whoever waits on the channel goes on waiting, for
  // the new time. std::logic_error if it was moved from.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& d) {
    if (channel_.get() != nullptr) return detail::set_time_channel(channel_.get(), detail::deadline_after(d), 0);
    if (function_ == nullptr) throw std::logic_error("weft::timer::reset: this timer was moved from");
    return detail::set_func_timer(function_, detail::deadline_after(d));
  }

 private:
  template <class Rep, class Period, class F>
    requires std::is_invocable_v<std::decay_t<F>&>
  friend timer after_func(const std::chrono::duration<Rep, Period>& d, F&& f);

  explicit timer(detail::func_timer* adopted) noexcept : function_(adopted) {}

  // The last owner just goes; others may have handles of the channel, and wait there.
  static void end(detail::chan_core* c) noexcept {
    if (c->owners.load(std::memory_order_relaxed) != 1) detail::set_time_channel(c, 0, 0);
  }

  friend class ticker;

  detail::chan_ptr channel_;
  detail::func_timer* function_ = nullptr;
};

// Calls f() after `d`, in a goroutine of its own. The timer can stop it, or have it called again (at the same time, if the
// first call still runs); it may also be dropped, which changes nothing. f is destroyed when neither a call nor the timer
// needs it any more.
template <class Rep, class Period, class F>
  requires std::is_invocable_v<std::decay_t<F>&>
timer after_func(const std::chrono::duration<Rep, Period>& d, F&& f) {
  timer t(new detail::func_timer_of<std::decay_t<F>>(std::forward<F>(f)));
  detail::start_func_timer(t.function_, detail::deadline_after(d));
  return t;
}

// A time on its channel every `d`. Ticks are dropped for who is slow: after a pause the oldest one missed is there, and the
// next comes at the next multiple of `d`. std::invalid_argument unless d > 0.
class ticker {
 public:
  template <class Rep, class Period>
  explicit ticker(const std::chrono::duration<Rep, Period>& d) : ticker(detail::checked_period(d)) {}

  ticker(ticker&&) noexcept = default;
  ticker& operator=(ticker&& other) noexcept {
    ticker old(std::move(other));
    std::swap(channel_, old.channel_);
    return *this;
  }
  // Stops it.
  ~ticker() {
    if (channel_.get() != nullptr) timer::end(channel_.get());
  }

  recv_chan<time_point> channel() const { return detail::share_time_channel(channel_); }

  // No more ticks, also none that has come and was not received. The channel is not closed: who waits there waits on.
  void stop() noexcept {
    if (channel_.get() != nullptr) detail::set_time_channel(channel_.get(), 0, 0);
  }

  // The next tick comes after `d` from now, whether it was stopped or not. std::logic_error if it was moved from.
  template <class Rep, class Period>
  void reset(const std::chrono::duration<Rep, Period>& d) {
    const std::int64_t period = detail::checked_period(d);
    if (channel_.get() == nullptr) throw std::logic_error("weft::ticker::reset: this ticker was moved from");
    detail::set_time_channel(channel_.get(), detail::deadline_after_ns(period), period);
  }

 private:
  explicit ticker(std::int64_t period)
      : channel_(detail::make_time_channel(detail::deadline_after_ns(period), period)) {}

  detail::chan_ptr channel_;
};

}  // namespace weft
