// Deadlines are counted from it, so it must never be behind the clock that decides when they have come.
#include "os/quick_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace {

using weft::os::now_ns;

constexpr std::int64_t test_ns = 300'000'000;

// Reads both clocks by turns, so that most readings are those of the counter. Returns how far the quick one was ahead at most.
std::int64_t compare() {
  weft::os::quick_clock clock;
  std::int64_t behind = 0, ahead = 0;
  const std::int64_t end = now_ns() + test_ns;
  for (std::int64_t before = now_ns(); before < end;) {
    const std::int64_t reading = clock.now_or_later();
    const std::int64_t after = now_ns();
    behind = std::max(behind, before - reading);
    ahead = std::max(ahead, reading - after);
    before = after;
  }
  EXPECT_EQ(behind, 0);
  return ahead;
}

TEST(quick_clock, is_never_behind_the_clock_and_hardly_ahead_of_it) { EXPECT_LE(compare(), 2'100); }

TEST(quick_clock, so_is_it_for_more_threads_than_cores) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { EXPECT_LE(compare(), 2'100); });
  for (std::thread& t : threads) t.join();
}

TEST(quick_clock, keeps_up_after_a_pause) {
  weft::os::quick_clock clock;
  for (int i = 0; i < 50; ++i) {
    clock.now_or_later();
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (i % 4)));
    const std::int64_t before = now_ns();
    EXPECT_GE(clock.now_or_later(), before);
  }
}

}  // namespace
