// Deadlines of the runtime are CLOCK_MONOTONIC nanoseconds, which is what steady_clock counts here.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

#include <weft/detail/errno.h>

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
  // In integers the way there might not fit, though the result does.
  const long double n = std::ceil(std::chrono::duration<long double, std::nano>(d).count());
  if (n >= static_cast<long double>(no_deadline)) return no_deadline;
  return n > 0 ? static_cast<std::int64_t>(n) : 0;
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

// Nanoseconds from now until then by that clock, whose epoch and unit may be anything: as 64 bits they might not fit. In a long double
// the times of the usual clocks are exact, and those of others to some nanoseconds.
template <class Clock, class Duration>
long double until(const std::chrono::time_point<Clock, Duration>& t) {
  using ns = std::chrono::duration<long double, std::nano>;
  return ns(t.time_since_epoch()).count() - ns(Clock::now().time_since_epoch()).count();
}

template <class Clock, class Duration>
bool has_come(const std::chrono::time_point<Clock, Duration>& t) {
  return !(detail::until(t) > 0);
}

template <class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration>& t) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return to_ns(t.time_since_epoch());
  } else {
    if (t == std::chrono::time_point<Clock, Duration>::max()) return no_deadline;
    const long double left = detail::until(t);
    return left > 0 ? deadline_after(std::chrono::duration<long double, std::nano>(left)) : 0;
  }
}

}  // namespace weft::detail
