// A heap and a wheel as one order, against a multimap, while time goes on.
#include "timer/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>

#include "support/timer_model.h"

namespace {

using test::node;
using test::timer_model;
using weft::timers::order;
using weft::timers::timer_node;

constexpr std::int64_t ms = 1'000'000;

// How far ahead deadlines lie: within a span of the wheel, within all of it, and beyond.
constexpr std::int64_t reaches[] = {ms / 2, 20 * ms, 400 * ms, 2000 * ms};

class an_order : public testing::Test {
 protected:
  std::int64_t random_when() {
    return now + 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(reaches[random() % std::size(reaches)]));
  }

  void change(node& n, unsigned growth) {
    const std::int64_t when = random_when();
    if (!expected.has(&n)) {
      if (random() % 100 >= growth) return;
      timers.insert(n, when);
      expected.insert(&n, when);
    } else if (random() % 100 < growth) {
      timers.rekey(n, when);
      expected.remove(&n);
      expected.insert(&n, when);
    } else {
      timers.remove(n);
      EXPECT_FALSE(n.pending());
      expected.remove(&n);
    }
  }

  void take_due() {
    timers.settle(now);
    while (timers.has_due(now)) {
      const order::item first = timers.take_first();
      ASSERT_EQ(first.when, expected.first_when());
      ASSERT_EQ(first.when, expected.when(first.node));
      ASSERT_TRUE(first.node->pending()) << "the timer is not touched";
      expected.remove(first.node);
      if (random() % 4 == 0) {  // as a periodic one
        const std::int64_t when = random_when();
        timers.insert(*first.node, when);
        expected.insert(first.node, when);
      } else {
        order::release(*first.node);
      }
    }
    ASSERT_TRUE(expected.size() == 0 || expected.first_when() > now) << "one that is due was left";
  }

  void look() {
    ASSERT_EQ(timers.size(), expected.size());
    ASSERT_EQ(timers.empty(), expected.size() == 0);
    ASSERT_LE(timers.first_when(), expected.first_when());
    ASSERT_EQ(timers.first_when() == 0, expected.size() == 0);
  }

  std::int64_t now = 5'000 * ms;
  std::mt19937_64 random{1};
  order timers;
  timer_model expected;
};

TEST_F(an_order, agrees_with_a_multimap_while_time_goes_on) {
  std::deque<node> nodes(3000);
  std::size_t most_in_wheel = 0;
  for (const unsigned growth : {90u, 70u, 40u, 95u, 10u}) {
    for (int i = 0; i < 20'000; ++i) {
      change(nodes[random() % nodes.size()], growth);
      if (i % 16 == 0) {
        // Mostly a little later; now and then after a sleep, or longer than the wheel is.
        now += i % 4096 == 0 ? 700 * ms : i % 512 == 0 ? 9 * ms : static_cast<std::int64_t>(random() % 100'000);
        take_due();
      }
      look();
      if (i % 512 == 0) {
        ASSERT_TRUE(timers.well_formed());
      }
      if (HasFatalFailure()) return;
      most_in_wheel = std::max(most_in_wheel, timers.in_wheel());
    }
  }
  EXPECT_GT(most_in_wheel, 500u) << "the wheel was not used";
}

TEST_F(an_order, knows_the_first_deadline_if_none_was_removed) {
  std::deque<node> nodes(2000);
  for (node& n : nodes) {
    const std::int64_t when = now + static_cast<std::int64_t>(random() % (300 * ms));
    timers.insert(n, when);
    expected.insert(&n, when);
    ASSERT_EQ(timers.first_when(), expected.first_when());
  }
  EXPECT_GT(timers.in_wheel(), 1000u);
  while (!timers.empty()) {
    now = timers.first_when();
    timers.settle(now);
    ASSERT_TRUE(timers.has_due(now)) << "somebody would be woken in vain";
    const order::item first = timers.take_first();
    ASSERT_EQ(first.when, expected.first_when());
    expected.remove(first.node);
    order::release(*first.node);
    ASSERT_EQ(timers.first_when(), expected.first_when());
  }
}

TEST_F(an_order, keeps_few_timers_in_the_heap) {
  std::deque<node> nodes(200);
  for (node& n : nodes) timers.insert(n, now + 100 * ms);
  EXPECT_EQ(timers.in_wheel(), 0u);
}

TEST_F(an_order, holds_deadlines_from_the_beginning_to_the_end_of_time) {
  constexpr std::int64_t end_of_time = std::numeric_limits<std::int64_t>::max();
  std::deque<node> nodes(1000);
  for (std::size_t i = 0; i < nodes.size(); ++i) timers.insert(nodes[i], i % 3 == 0 ? 1 : i % 3 == 1 ? end_of_time : now);
  EXPECT_EQ(timers.first_when(), 1);
  timers.settle(end_of_time);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ASSERT_TRUE(timers.has_due(end_of_time));
    order::release(*timers.take_first().node);
  }
  EXPECT_TRUE(timers.empty());
}

TEST_F(an_order, moves_all_timers_to_another) {
  order to;
  std::deque<node> nodes(2000);
  for (node& n : nodes) timers.insert(n, now + static_cast<std::int64_t>(random() % (300 * ms)));
  ASSERT_GT(timers.in_wheel(), 1000u);
  std::size_t moved = 0;
  timers.move_to(to, [&](timer_node& n) {
    EXPECT_TRUE(n.pending());
    ++moved;
  });
  EXPECT_EQ(moved, nodes.size());
  EXPECT_TRUE(timers.empty());
  EXPECT_TRUE(timers.well_formed());
  EXPECT_EQ(to.size(), nodes.size());
  EXPECT_GT(to.in_wheel(), 1000u);
  EXPECT_TRUE(to.well_formed());
  for (node& n : nodes) to.remove(n);
  EXPECT_TRUE(to.empty());
}

TEST_F(an_order, gives_memory_back) {
  std::deque<node> nodes(100'000);
  for (node& n : nodes) timers.insert(n, now + static_cast<std::int64_t>(random() % (300 * ms)));
  const std::size_t most = timers.capacity();
  for (node& n : nodes) timers.remove(n);
  EXPECT_LT(timers.capacity(), most / 8);
  EXPECT_TRUE(timers.well_formed());
}

TEST_F(an_order, creating_and_stopping_one_at_a_time_takes_no_memory) {
  std::deque<node> others(1000);
  for (node& n : others) timers.insert(n, now + static_cast<std::int64_t>(random() % (300 * ms)));
  ASSERT_GT(timers.in_wheel(), 500u);
  const std::size_t before = timers.capacity();
  node n;
  for (int i = 0; i < 1'000'000; ++i) {
    timers.insert(n, now + 1 + i % 2000 * (ms / 10));
    timers.remove(n);
  }
  EXPECT_EQ(timers.capacity(), before);
  EXPECT_TRUE(timers.well_formed());
}

}  // namespace
