// A P's ring, by one thread. What threads do to each other is in tests/model/run_queue.cpp.
#include "gmp/run_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

struct item {
  int number;
};

using ring = weft::gmp::run_queue<item, 8>;

// A ring counts for ever, modulo 2^32, and nobody can wait for that: this lets one begin where the test wants it.
// (An explicit instantiation may name private members.)
void begin_at(ring& q, std::uint32_t index);
template <std::atomic<std::uint64_t> ring::*Head, std::atomic<std::uint32_t> ring::*Tail>
struct door {
  friend void begin_at(ring& q, std::uint32_t index) {
    (q.*Head).store(index);
    (q.*Tail).store(index);
  }
};
template struct door<&ring::head_, &ring::tail_>;

// Everything must hold wherever the indices stand: at zero, and around the place where they wrap.
class a_ring : public testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    begin_at(q, GetParam());
    for (int i = 0; i < 32; ++i) items[i].number = i;
  }

  void push(int first, int last) {
    for (int i = first; i <= last; ++i) ASSERT_TRUE(q.push(&items[i]));
  }
  static int number(const item* i) { return i == nullptr ? -1 : i->number; }
  static std::vector<int> drain(ring& r) {
    std::vector<int> all;
    while (const item* i = r.pop()) all.push_back(i->number);
    return all;
  }
  static std::vector<int> range(int first, int last) {
    std::vector<int> all;
    for (int i = first; i <= last; ++i) all.push_back(i);
    return all;
  }

  ring q;
  item items[32];
};

constexpr std::uint32_t top = std::numeric_limits<std::uint32_t>::max();
INSTANTIATE_TEST_SUITE_P(from_index, a_ring, testing::Values(0u, 5u, top, top - 1, top - 3, top - 7, 1u << 31),
                         testing::PrintToStringParamName());

TEST_P(a_ring, that_is_empty_gives_nothing) {
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(q.size(), 0u);
  EXPECT_EQ(q.pop(), nullptr);
  EXPECT_EQ(q.pop_unshared(), nullptr);
  item* out[ring::capacity];
  EXPECT_EQ(q.take_half(out), 0u);
}

TEST_P(a_ring, is_first_in_first_out) {
  push(0, 4);
  EXPECT_EQ(q.size(), 5u);
  EXPECT_EQ(drain(q), range(0, 4));
}

TEST_P(a_ring, is_first_in_first_out_for_the_only_p) {
  push(0, 7);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(number(q.pop_unshared()), i);
  EXPECT_EQ(q.pop_unshared(), nullptr);
}

TEST_P(a_ring, holds_as_many_as_its_capacity_and_no_more) {
  push(0, 7);
  EXPECT_EQ(q.size(), ring::capacity);
  EXPECT_FALSE(q.push(&items[8]));
  EXPECT_EQ(number(q.pop()), 0);
  EXPECT_TRUE(q.push(&items[8]));
  EXPECT_FALSE(q.push(&items[9]));
  EXPECT_EQ(drain(q), range(1, 8));
}

TEST_P(a_ring, goes_round_many_times) {
  push(0, 2);
  for (int i = 0; i < 1000; ++i) {
    const item* first = q.pop();
    ASSERT_EQ(first, &items[i % 32]);
    ASSERT_TRUE(q.push(&items[(i + 3) % 32]));
    ASSERT_EQ(q.size(), 3u);
  }
}

TEST_P(a_ring, that_is_full_gives_its_older_half) {
  push(0, 7);
  item* out[ring::capacity] = {};
  ASSERT_EQ(q.take_half(out), ring::capacity / 2);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(number(out[i]), i);
  EXPECT_EQ(drain(q), range(4, 7));
}

TEST_P(a_ring, that_is_not_full_keeps_all) {
  for (int n = 1; n < 8; ++n) {
    ring r;
    begin_at(r, GetParam());
    for (int i = 0; i < n; ++i) ASSERT_TRUE(r.push(&items[i]));
    item* out[ring::capacity];
    EXPECT_EQ(r.take_half(out), 0u);
    EXPECT_EQ(drain(r), range(0, n - 1));
  }
}

TEST_P(a_ring, loses_the_older_half_rounded_up_to_a_thief) {
  for (int n = 0; n <= 8; ++n) {
    ring r;
    begin_at(r, GetParam());
    for (int i = 0; i < n; ++i) ASSERT_TRUE(r.push(&items[i]));
    ring thief;
    begin_at(thief, GetParam() + 6);
    std::uint32_t moved = 99;
    const item* got = r.grab_half(thief, moved);
    const int half = (n + 1) / 2;
    EXPECT_EQ(moved, static_cast<std::uint32_t>(half));
    EXPECT_EQ(number(got), half - 1) << "the thief runs the youngest of them, so that the others need not be moved";
    EXPECT_EQ(drain(thief), range(0, half - 2));
    EXPECT_EQ(drain(r), range(half, n - 1));
  }
}

TEST_P(a_ring, takes_a_batch) {
  item* batch[] = {&items[0], &items[1], &items[2]};
  EXPECT_EQ(q.push_batch(batch, 3), 3u);
  EXPECT_EQ(q.push_batch(batch, 0), 0u);
  EXPECT_EQ(drain(q), range(0, 2));
}

TEST_P(a_ring, takes_as_much_of_a_batch_as_fits) {
  push(0, 4);
  item* batch[] = {&items[5], &items[6], &items[7], &items[8], &items[9]};
  EXPECT_EQ(q.push_batch(batch, 5), 3u);
  EXPECT_EQ(q.push_batch(batch, 5), 0u);
  EXPECT_EQ(drain(q), range(0, 7));
}

TEST_P(a_ring, shows_what_comes_after_next) {
  push(0, 3);
  EXPECT_EQ(number(q.peek_second()), 1);
  q.pop();
  EXPECT_EQ(number(q.peek_second()), 2);
  EXPECT_EQ(q.size(), 3u);
}

TEST_P(a_ring, gives_back_what_was_pushed_last) {
  EXPECT_FALSE(q.take_back());
  EXPECT_FALSE(q.take_back_unshared());
  push(0, 3);
  EXPECT_EQ(number(q.peek_last()), 3);
  EXPECT_TRUE(q.take_back());
  EXPECT_EQ(number(q.peek_last()), 2);
  EXPECT_TRUE(q.take_back_unshared());
  EXPECT_EQ(q.size(), 2u);
  push(4, 9);
  EXPECT_FALSE(q.push(&items[10]));
  EXPECT_EQ(drain(q), (std::vector<int>{0, 1, 4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(q.take_back());
}

}  // namespace
