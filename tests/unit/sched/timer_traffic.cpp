// When timers are waited for in batches.
#include "sched/timer_traffic.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::sched::timer_traffic;

constexpr std::int64_t now = 1'000'000'000;
constexpr std::uint64_t many = timer_traffic::worth / timer_traffic::judged;
constexpr std::int64_t dense = now + timer_traffic::a_moment_ns - 1, sparse = now + timer_traffic::a_moment_ns;

struct looks {
  timer_traffic traffic;
  std::uint64_t timers_run = 0;

  bool is_batch(std::int64_t when, std::uint64_t ran) {
    timers_run += ran;
    const std::int64_t ns = traffic.batch_before(when, now, [this] { return timers_run; });
    EXPECT_TRUE(ns == 0 || ns == timer_traffic::batch_ns);
    return ns != 0;
  }
  // How many looks at dense timers it takes until there is a batch.
  int until_batch() {
    int n = 1;
    while (!is_batch(dense, 1)) ++n;
    return n;
  }
};

TEST(timer_traffic, few_timers_are_waited_for_one_by_one) {
  looks l;
  for (int i = 0; i < 1000; ++i) {
    for (int k = 1; k < timer_traffic::long_row; ++k) EXPECT_FALSE(l.is_batch(dense, 1)) << i;
    EXPECT_FALSE(l.is_batch(sparse, 1)) << i;
  }
}

TEST(timer_traffic, those_that_come_densely_are_waited_for_in_batches) {
  looks l;
  EXPECT_EQ(l.until_batch(), timer_traffic::long_row);
  for (int k = 0; k < 1000; ++k) EXPECT_TRUE(l.is_batch(k % 2 == 0 ? dense : now - 1, many));
}

TEST(timer_traffic, one_gap_ends_that) {
  for (const std::int64_t gap : {sparse, now + 1'000'000'000, std::int64_t{0}}) {
    looks l;
    l.until_batch();
    EXPECT_FALSE(l.is_batch(gap, many));
    EXPECT_EQ(l.until_batch(), timer_traffic::long_row);
  }
}

TEST(timer_traffic, a_lone_timer_that_comes_back_at_once_is_hardly_ever_a_batch) {
  looks l;
  int batches = 0;
  for (int k = 0; k < 100'000; ++k) batches += l.is_batch(dense, 1);
  EXPECT_LT(batches, 600);
  for (int k = 0; k < 100'000; ++k) batches -= l.is_batch(dense, 1);
  EXPECT_GT(batches, 0);
}

TEST(timer_traffic, batches_that_are_worth_it_make_up_for_those_that_were_not) {
  looks l;
  for (int k = 0; k < 10'000; ++k) l.is_batch(dense, 1);
  l.until_batch();
  for (int k = 0; k < timer_traffic::judged; ++k) EXPECT_TRUE(l.is_batch(dense, many));
  EXPECT_FALSE(l.is_batch(sparse, many));
  EXPECT_EQ(l.until_batch(), timer_traffic::long_row);
}

}  // namespace
