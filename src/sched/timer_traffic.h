// Whether timers come so densely that to sleep until each of them costs more than what they start. Then the M in the poller waits
// for a batch of them: each is late by as much as a sleep is on most systems, and a program with 10^5 sleepers takes a sixth
// less CPU time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::sched {

class timer_traffic {
 public:
  static constexpr std::int64_t a_moment_ns = 5'000;
  static constexpr std::int64_t batch_ns = 60'000;
  static constexpr int long_row = 5, longest_row = 4096;
  // So many batches are judged together, for who comes to look may be ahead of who runs the last one; and so many timers are worth
  // it. A lone one that is set again and again for a microsecond is one a batch.
  static constexpr int judged = 16;
  static constexpr std::uint64_t worth = 8 * judged;

  // There is nothing to do at the time `now`, and the next timer is due at `when` (0: there is none). How long to sleep at least.
  // timers_run() says how many have been run in all; it is seldom asked, for it has to look at all Ps.
  template <class Count>
  std::int64_t batch_before(std::int64_t when, std::int64_t now, Count timers_run) noexcept {
    if (batches_ == judged) judge(timers_run());
    const bool at_once = when != 0 && when - now < a_moment_ns;
    row_ = at_once ? std::min(row_ + 1, needed_) : 0;
    if (row_ < needed_) return 0;
    if (batches_++ == 0) timers_before_ = timers_run();
    return batch_ns;
  }

 private:
  // After poor ones it takes longer until the next is tried.
  void judge(std::uint64_t timers_run) noexcept {
    const bool were_worth_it = timers_run - timers_before_ >= worth;
    if (!were_worth_it) row_ = 0;
    needed_ = were_worth_it ? long_row : std::min(2 * needed_, longest_row);
    batches_ = 0;
  }

  int row_ = 0;  // times that the next one was due within a moment
  int needed_ = long_row;
  int batches_ = 0;  // since the last judgement
  std::uint64_t timers_before_ = 0;
};

}  // namespace weft::sched
