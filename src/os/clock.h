// Time for the runtime: CLOCK_MONOTONIC in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace weft::os {

inline std::int64_t now_ns() noexcept {
  timespec ts;
  ::clock_gettime(CLOCK_MONOTONIC, &ts);
  return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

inline void sleep_thread_ns(std::int64_t ns) noexcept {
  timespec ts{.tv_sec = static_cast<time_t>(ns / 1'000'000'000), .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, nullptr);  // returns the error instead of setting errno
}

}  // namespace weft::os
