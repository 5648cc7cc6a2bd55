// Sleeping.
#pragma once

#include <chrono>
#include <cstdint>

#include <weft/detail/time.h>

namespace weft {

namespace detail {

void sleep_until_ns(std::int64_t deadline_ns);

}  // namespace detail

// Parks the goroutine (on a plain thread: the thread) for at least this long.
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& d) {
  detail::sleep_until_ns(detail::deadline_after(d));
}

// Until a time of steady_clock or system_clock (any clock with now()); changes of the system's time are followed.
template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& t) {
  do {
    detail::sleep_until_ns(detail::deadline_at(t));
  } while (Clock::now() < t);
}

}  // namespace weft
