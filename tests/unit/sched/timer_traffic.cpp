// When timers are waited for in batches.
#include "sched/timer_traffic.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::sched::timer_traffic;

constexpr std::int64_t now = 1'000'000'000;
constexpr std::int64_t dense = now + timer_traffic::a_moment_ns - 1, sparse = now + timer_traffic::a_moment_ns;

TEST(timer_traffic, few_timers_are_waited_for_one_by_one) {
  timer_traffic t;
  for (int i = 0; i < 1000; ++i) {
    for (int k = 1; k < timer_traffic::long_row; ++k) EXPECT_EQ(t.batch_before(dense, now), 0) << i;
    EXPECT_EQ(t.batch_before(sparse, now), 0) << i;
  }
}

TEST(timer_traffic, those_that_come_densely_are_waited_for_in_batches) {
  timer_traffic t;
  for (int k = 1; k < timer_traffic::long_row; ++k) EXPECT_EQ(t.batch_before(dense, now), 0);
  for (int k = 0; k < 1000; ++k) EXPECT_EQ(t.batch_before(k % 2 == 0 ? dense : now - 1, now), timer_traffic::batch_ns);
}

TEST(timer_traffic, one_gap_ends_that) {
  for (const std::int64_t gap : {sparse, now + 1'000'000'000, std::int64_t{0}}) {
    timer_traffic t;
    for (int k = 0; k < 10; ++k) t.batch_before(dense, now);
    EXPECT_EQ(t.batch_before(gap, now), 0);
    EXPECT_EQ(t.batch_before(dense, now), 0);
  }
}

}  // namespace
