// Time for the runtime: CLOCK_MONOTONIC in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

#include <sys/prctl.h>

namespace weft::os {

inline std::int64_t to_ns(const timespec& ts) noexcept { return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec; }

inline std::int64_t now_ns() noexcept {
  timespec ts;
  ::clock_gettime(CLOCK_MONOTONIC, &ts);
  return to_ns(ts);
}

inline void sleep_thread_ns(std::int64_t ns) noexcept {
  timespec ts{.tv_sec = static_cast<time_t>(ns / 1'000'000'000), .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, nullptr);  // returns the error instead of setting errno
}

// By default the kernel lets a sleeper be late by 50 us, so that it can wake several at a time. Not this thread, for as long as
// this object lives: afterwards the thread may run code that sleeps in crowds.
class punctual {
 public:
  punctual() noexcept { ::prctl(PR_SET_TIMERSLACK, 1); }
  ~punctual() { ::prctl(PR_SET_TIMERSLACK, 0); }  // the default
  punctual(const punctual&) = delete;
  punctual& operator=(const punctual&) = delete;
};

// How long a thread of this process has used a core; 0 if it is gone.
inline std::int64_t thread_cpu_ns(std::int32_t tid) noexcept {
  // The kernel's encoding of "the time that the scheduler has given to this thread", as pthread_getcpuclockid() makes it.
  const auto clock = static_cast<clockid_t>((~static_cast<std::uint32_t>(tid) << 3) | 6u);
  timespec ts;
  return ::clock_gettime(clock, &ts) == 0 ? to_ns(ts) : 0;
}

}  // namespace weft::os
