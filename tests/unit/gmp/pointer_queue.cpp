// The queue of pointers, and the blocks it is made of.
#include "gmp/pointer_queue.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace {

using weft::gmp::pointer_block;
using weft::gmp::pointer_block_pool;
using weft::gmp::pointer_queue;

void* item(std::uintptr_t n) { return reinterpret_cast<void*>(n); }

std::vector<void*> contents(const pointer_queue& q) {
  std::vector<void*> all;
  q.for_each([&](void* p) { all.push_back(p); });
  return all;
}

// Where the items lie.
std::set<const void*> places(const pointer_queue& q) {
  std::set<const void*> all;
  q.for_each([&](void* const& slot) { all.insert(&slot); });
  return all;
}

TEST(a_pointer_queue, that_is_new_is_empty) {
  pointer_queue q;
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(q.size(), 0u);
  EXPECT_EQ(q.pop(), nullptr);
}

TEST(a_pointer_queue, is_first_in_first_out_across_blocks) {
  constexpr std::uintptr_t n = 5 * pointer_block::capacity + 3;
  pointer_queue q;
  for (std::uintptr_t i = 1; i <= n; ++i) {
    q.push(item(i));
    ASSERT_EQ(q.size(), i);
  }
  for (std::uintptr_t i = 1; i <= n; ++i) ASSERT_EQ(q.pop(), item(i));
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(q.pop(), nullptr);
}

TEST(a_pointer_queue, is_right_when_a_block_is_filled_and_emptied_exactly) {
  pointer_queue q;
  for (int round = 0; round < 3; ++round) {
    for (std::uintptr_t i = 1; i <= pointer_block::capacity; ++i) q.push(item(i));
    for (std::uintptr_t i = 1; i <= pointer_block::capacity; ++i) ASSERT_EQ(q.pop(), item(i));
    ASSERT_EQ(q.pop(), nullptr);
    ASSERT_TRUE(contents(q).empty());
  }
}

TEST(a_pointer_queue, does_as_a_list_does) {
  pointer_queue q;
  std::deque<void*> list;
  std::mt19937 dice(1);
  std::uintptr_t next = 1;
  for (int i = 0; i < 20'000; ++i) {
    // In turns mostly pushes and mostly pops, so that blocks come and go.
    const bool push = dice() % 10 < (i / 1000 % 2 == 0 ? 7u : 3u);
    if (push) {
      q.push(item(next));
      list.push_back(item(next++));
    } else {
      void* const expected = list.empty() ? nullptr : list.front();
      if (!list.empty()) list.pop_front();
      ASSERT_EQ(q.pop(), expected);
    }
    ASSERT_EQ(q.size(), list.size());
    ASSERT_EQ(q.empty(), list.empty());
  }
  EXPECT_EQ(contents(q), std::vector<void*>(list.begin(), list.end()));
}

TEST(a_pointer_queue, shows_all_of_its_items_in_order) {
  pointer_queue q;
  for (std::uintptr_t i = 1; i <= 300; ++i) q.push(item(i));
  for (int i = 0; i < 130; ++i) q.pop();
  std::vector<void*> expected;
  for (std::uintptr_t i = 131; i <= 300; ++i) expected.push_back(item(i));
  EXPECT_EQ(contents(q), expected);
}

TEST(a_pointer_queue, uses_its_memory_again) {
  pointer_queue q;
  std::set<const void*> ever;
  for (int round = 0; round < 1000; ++round) {
    for (std::uintptr_t i = 1; i <= 500; ++i) q.push(item(i));
    const auto now = places(q);
    ever.insert(now.begin(), now.end());
    while (q.pop() != nullptr) {
    }
  }
  // 500 items need four blocks, five if they begin in the middle of one.
  EXPECT_LE(ever.size(), 5u * pointer_block::capacity);
}

TEST(a_pointer_queue, uses_its_memory_again_while_it_is_never_empty) {
  pointer_queue q;
  std::set<const void*> ever;
  for (std::uintptr_t i = 1; i <= 500; ++i) q.push(item(i));
  for (int round = 0; round < 20'000; ++round) {
    q.push(item(1));
    ASSERT_NE(q.pop(), nullptr);
    if (round % 50 != 0) continue;
    const auto now = places(q);
    ever.insert(now.begin(), now.end());
  }
  EXPECT_LE(ever.size(), 6u * pointer_block::capacity);
}

TEST(two_pointer_queues, can_be_swapped) {
  pointer_queue a;
  pointer_queue b;
  for (std::uintptr_t i = 1; i <= 200; ++i) a.push(item(i));
  b.push(item(1000));
  std::swap(a, b);
  a.push(item(1001));
  b.push(item(201));
  EXPECT_EQ(contents(a), (std::vector<void*>{item(1000), item(1001)}));
  for (std::uintptr_t i = 1; i <= 201; ++i) ASSERT_EQ(b.pop(), item(i));
  EXPECT_EQ(b.pop(), nullptr);
}

TEST(a_block_pool, hands_out_what_was_put_back_before_it_maps_more) {
  constexpr int count = 100;
  pointer_block_pool pool;
  std::set<pointer_block*> first;
  for (int i = 0; i < count; ++i) EXPECT_TRUE(first.insert(pool.take()).second);
  for (pointer_block* b : first) pool.put(b);
  std::set<pointer_block*> second;
  for (int i = 0; i < count; ++i) EXPECT_TRUE(second.insert(pool.take()).second);
  EXPECT_EQ(first, second);
}

TEST(a_block_pool, hands_out_empty_blocks) {
  pointer_block_pool pool;
  pointer_block* used = pool.take();
  used->begin = 5;
  used->end = 9;
  used->next = used;
  pool.put(used);
  pointer_block* again = pool.take();
  ASSERT_EQ(again, used);
  EXPECT_EQ(again->begin, 0u);
  EXPECT_EQ(again->end, 0u);
  EXPECT_EQ(again->next, nullptr);
}

}  // namespace
