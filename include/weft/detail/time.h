// Deadlines of the runtime are CLOCK_MONOTONIC nanoseconds, which is what steady_clock counts here.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace weft::detail {

inline constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

// Nanoseconds, rounded up and cut to what fits.
template <class Rep, class Period>
std::int64_t to_ns(const std::chrono::duration<Rep, Period>& d) {
  using in_ns = std::ratio_divide<Period, std::nano>;
  if constexpr (std::is_integral_v<Rep> && in_ns::den == 1) {  // all the usual ones
    std::int64_t n = 0;
    if (__builtin_mul_overflow(d.count(), in_ns::num, &n)) return d.count() > 0 ? no_deadline : 0;
    return n > 0 ? n : 0;
  }
  using ns = std::chrono::duration<long double, std::nano>;
  if (ns(d).count() >= static_cast<long double>(no_deadline)) return no_deadline;
  if (ns(d).count() <= 0) return 0;
  return std::chrono::ceil<std::chrono::nanoseconds>(d).count();
}

inline std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// So long from now; never before that, and after it by two microseconds at most, if it is long (else not at all).
std::int64_t deadline_after_ns(std::int64_t ns) noexcept;

template <class Rep, class Period>
std::int64_t deadline_after(const std::chrono::duration<Rep, Period>& d) {
  return deadline_after_ns(to_ns(d));
}

// Nanoseconds since the clock's epoch, cut to what fits: times of a coarse clock may be too far away to be compared as they are.
template <class Clock, class Duration>
std::int64_t since_epoch_ns(const std::chrono::time_point<Clock, Duration>& t) {
  const auto d = t.time_since_epoch();
  return d >= Duration::zero() ? to_ns(d) : -to_ns(d == Duration::min() ? Duration::max() : Duration(-d));
}

template <class Clock, class Duration>
bool has_come(const std::chrono::time_point<Clock, Duration>& t) {
  return detail::since_epoch_ns(Clock::now()) >= detail::since_epoch_ns(t);
}

template <class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration>& t) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return to_ns(t.time_since_epoch());
  } else {
    const std::int64_t when = detail::since_epoch_ns(t);
    const std::int64_t now = detail::since_epoch_ns(Clock::now());
    if (when <= now) return 0;
    std::int64_t left = 0;
    return when == no_deadline || __builtin_sub_overflow(when, now, &left) ? no_deadline : deadline_after_ns(left);
  }
}

}  // namespace weft::detail
