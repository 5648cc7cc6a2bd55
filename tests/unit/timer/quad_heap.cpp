// The order of timers, against a multimap, and its memory.
#include "timer/quad_heap.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "support/build.h"
#include "support/timer_model.h"

namespace {

using weft::timers::quad_heap;
using weft::timers::timer_node;

using test::node;
using model = test::timer_model;

// `growth` of 100 changes insert if they can: the heap swells or shrinks until it has all nodes or none.
void random_changes(quad_heap& heap, model& expected, std::deque<node>& nodes, std::mt19937_64& random, int changes,
                    unsigned growth, std::int64_t range) {
  for (int i = 0; i < changes; ++i) {
    node& n = nodes[random() % nodes.size()];
    const auto when = static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(range));
    if (!expected.has(&n)) {
      if (random() % 100 >= growth) continue;
      heap.insert(n, when);
      expected.insert(&n, when);
    } else if (random() % 100 < growth) {
      heap.rekey(n, when);
      expected.remove(&n);
      expected.insert(&n, when);
    } else if (random() % 3 != 0) {
      heap.remove(n);
      expected.remove(&n);
    } else {
      const quad_heap::item first = heap.take_first();
      ASSERT_EQ(first.when, expected.first_when());
      ASSERT_EQ(first.when, expected.when(first.node));
      ASSERT_TRUE(first.node->pending()) << "the timer is not touched";
      quad_heap::release(*first.node);
      expected.remove(first.node);
    }
    ASSERT_EQ(heap.first_when(), expected.first_when());
    ASSERT_EQ(heap.size(), expected.size());
    ASSERT_EQ(heap.empty(), expected.size() == 0);
    if (expected.size() < 100 || i % 256 == 0) {
      ASSERT_TRUE(heap.well_formed());
    }
  }
  ASSERT_TRUE(heap.well_formed());
}

TEST(quad_heap, agrees_with_a_multimap_under_random_changes) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::deque<node> nodes(seed % 3 == 0 ? 3000 : 1 + random() % 60);
    quad_heap heap;
    model expected;
    const std::int64_t range = seed % 2 == 0 ? 20 : 1'000'000;  // many equal deadlines; hardly any
    for (const unsigned growth : {80u, 50u, 20u, 95u, 5u}) {
      random_changes(heap, expected, nodes, random, 3000, growth, range);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(quad_heap, takes_everything_in_order) {
  quad_heap heap;
  std::deque<node> nodes(10'000);
  std::mt19937_64 random(7);
  for (node& n : nodes) heap.insert(n, static_cast<std::int64_t>(1 + random() % 5000));
  std::int64_t last = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const quad_heap::item first = heap.take_first();
    quad_heap::release(*first.node);
    ASSERT_LE(last, first.when);
    last = first.when;
  }
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.first_when(), 0);
}

TEST(quad_heap, holds_deadlines_at_the_end_of_time) {
  constexpr std::int64_t end_of_time = std::numeric_limits<std::int64_t>::max();
  quad_heap heap;
  std::deque<node> nodes(11);
  for (node& n : nodes) heap.insert(n, end_of_time);
  heap.rekey(nodes[5], 1);
  heap.remove(nodes[0]);
  EXPECT_TRUE(heap.well_formed());
  EXPECT_EQ(heap.take_first().node, &nodes[5]);
  for (std::size_t left = 9; left > 0; --left) {
    EXPECT_EQ(heap.first_when(), end_of_time);
    EXPECT_EQ(heap.size(), left);
    EXPECT_NE(heap.take_first().node, nullptr);
  }
  EXPECT_TRUE(heap.empty());
}

TEST(quad_heap, moves_all_timers_to_another) {
  quad_heap from, to;
  std::deque<node> nodes(2000);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    (i % 4 == 0 ? to : from).insert(nodes[i], static_cast<std::int64_t>(1 + i * 7919 % 2000));
  from.remove(nodes[1]);  // leaves a hole
  std::size_t moved = 0;
  from.move_to(to, [&](timer_node& n) {
    EXPECT_TRUE(n.pending());
    ++moved;
  });
  EXPECT_EQ(moved, 1499u);
  EXPECT_TRUE(from.empty());
  EXPECT_EQ(from.capacity(), 0u);
  EXPECT_TRUE(from.well_formed());
  EXPECT_EQ(to.size(), 1999u);
  EXPECT_TRUE(to.well_formed());
  from.insert(nodes[1], 5);
  EXPECT_EQ(from.first_when(), 5);
}

TEST(quad_heap, gives_memory_back_while_some_timers_stay) {
  quad_heap heap;
  std::deque<node> nodes(test::scaled(1'000'000, 200'000, 100'000));
  for (std::size_t i = 0; i < nodes.size(); ++i) heap.insert(nodes[i], static_cast<std::int64_t>(i + 1));
  const std::size_t most = heap.capacity();
  EXPECT_GE(most, nodes.size());
  // One in a thousand stays, also of those that came last, whose slots are the highest.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i % 1000 != 999) heap.remove(nodes[i]);
  }
  EXPECT_LT(heap.capacity(), most / 30);
  EXPECT_EQ(heap.size(), nodes.size() / 1000);
  EXPECT_TRUE(heap.well_formed());
  for (std::size_t i = 999; i < nodes.size(); i += 1000) {
    const quad_heap::item first = heap.take_first();
    ASSERT_EQ(first.node, &nodes[i]);
    quad_heap::release(*first.node);
  }
}

TEST(quad_heap, creating_and_stopping_one_at_a_time_takes_no_memory) {
  quad_heap heap;
  std::deque<node> others(1000);
  for (node& n : others) heap.insert(n, 1000);
  const std::size_t before = heap.capacity();
  node n;
  for (int i = 0; i < 1'000'000; ++i) {
    heap.insert(n, 1 + i % 2000);
    heap.remove(n);
  }
  EXPECT_EQ(heap.capacity(), before);
  EXPECT_TRUE(heap.well_formed());
}

}  // namespace
