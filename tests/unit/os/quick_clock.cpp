// Deadlines are counted from it, so it must never be behind the clock that decides when they have come.
#include "os/quick_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace {

using weft::os::now_ns;

constexpr std::int64_t test_ns = 300'000'000;

class quick_clock : public testing::Test {
 protected:
  static void SetUpTestSuite() { weft::os::quick_clock::look_at_kernel(); }
};

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

TEST_F(quick_clock, is_never_behind_the_clock_and_hardly_ahead_of_it) { EXPECT_LE(compare(), 2'400); }

TEST_F(quick_clock, so_is_it_for_more_threads_than_cores) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { EXPECT_LE(compare(), 2'400); });
  for (std::thread& t : threads) t.join();
}

TEST_F(quick_clock, keeps_up_after_a_pause) {
  weft::os::quick_clock clock;
  for (int i = 0; i < 50; ++i) {
    clock.now_or_later();
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (i % 4)));
    const std::int64_t before = now_ns();
    EXPECT_GE(clock.now_or_later(), before);
  }
}

TEST_F(quick_clock, never_goes_back_for_a_thread) {
  weft::os::quick_clock clock;
  std::int64_t last = 0, back = 0;
  for (const std::int64_t end = now_ns() + test_ns; last < end;) {
    const std::int64_t reading = clock.now_or_later();
    back = std::max(back, last - reading);
    last = reading;
  }
  EXPECT_EQ(back, 0);
}

// ---- how fast the counter is

using weft::os::counter_reading;
using weft::os::counter_speed;

constexpr std::int64_t ms = 1'000'000;

// With 3 ticks a nanosecond.
counter_reading at(std::int64_t ns) { return {static_cast<std::uint64_t>(3 * ns), ns, 100}; }

TEST(counter_speed, is_known_after_two_spans_that_agree) {
  counter_speed s;
  EXPECT_EQ(s.learn(at(100 * ms)), 0);
  EXPECT_EQ(s.learn(at(101 * ms)), 0);
  EXPECT_NEAR(s.learn(at(102 * ms)), 1.0 / 3, 1e-9);
}

TEST(counter_speed, is_not_told_from_spans_that_are_too_short_or_too_long) {
  counter_speed s;
  for (std::int64_t t = 0; t < ms; t += 1'000) EXPECT_EQ(s.learn(at(100 * ms + t)), 0);
  for (std::int64_t t = 1; t < 10; ++t) EXPECT_EQ(s.learn(at(t * 2'000 * ms)), 0);
}

TEST(counter_speed, readings_that_took_long_do_not_count) {
  counter_speed s;
  for (std::int64_t t = 100; t < 110; ++t) {
    counter_reading r = at(t * ms);
    r.took = 1'000'000;
    EXPECT_EQ(s.learn(r), 0);
  }
}

TEST(counter_speed, a_counter_that_jumps_or_runs_on_while_the_clock_stands_is_not_believed) {
  counter_speed s;
  EXPECT_EQ(s.learn(at(100 * ms)), 0);
  EXPECT_EQ(s.learn(at(101 * ms)), 0);
  counter_reading r = at(102 * ms);
  r.ticks += 30'000'000;  // 10 ms that the other clock knows nothing of
  EXPECT_EQ(s.learn(r), 0);
  r = {1'000, 103 * ms, 100};  // begins anew
  EXPECT_EQ(s.learn(r), 0);
  r = {1'100, 104 * ms, 100};  // nearly stands
  EXPECT_EQ(s.learn(r), 0);
  r = {1'200, 105 * ms, 100};
  EXPECT_EQ(s.learn(r), 0);
}

TEST(counter_speed, a_reading_that_comes_late_is_not_believed) {
  counter_speed s;
  EXPECT_EQ(s.learn(at(101 * ms)), 0);
  EXPECT_EQ(s.learn({static_cast<std::uint64_t>(300 * ms), 102 * ms, 100}), 0);  // its ticks are from before
  EXPECT_EQ(s.learn(at(100 * ms)), 0);
  EXPECT_EQ(s.learn(at(103 * ms)), 0);
  EXPECT_EQ(s.learn(at(99 * ms)), 0);
}

}  // namespace
