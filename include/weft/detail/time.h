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

inline std::int64_t deadline_after_ns(std::int64_t ns) {
  const std::int64_t now = steady_now_ns();
  return ns > no_deadline - now ? no_deadline : now + ns;
}

template <class Rep, class Period>
std::int64_t deadline_after(const std::chrono::duration<Rep, Period>& d) {
  return deadline_after_ns(to_ns(d));
}

template <class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration>& t) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return to_ns(t.time_since_epoch());
  } else {
    const auto now = Clock::now();
    return t <= now ? 0 : deadline_after(t - now);  // one that is long past is too far away to be subtracted
  }
}

}  // namespace weft::detail
