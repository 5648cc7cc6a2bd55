// latch: std's, for goroutines and plain threads.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>

#include "support/anywhere.h"
#include "support/build.h"

namespace {

static_assert(weft::latch::max() >= 1'000'000'000);
static_assert(!std::is_copy_constructible_v<weft::latch>);
static_assert(!std::is_convertible_v<int, weft::latch>);

constinit weft::latch at_namespace_scope(1);

class latch : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, latch, test::everywhere(), test::name_of);

TEST_P(latch, opens_when_it_has_been_counted_down) {
  here([] {
    weft::latch l(3);
    EXPECT_FALSE(l.try_wait());
    l.count_down();
    EXPECT_FALSE(l.try_wait());
    l.count_down(2);
    EXPECT_TRUE(l.try_wait());
    l.wait();
    l.count_down(0);
    EXPECT_TRUE(weft::latch(0).try_wait());
    EXPECT_FALSE(at_namespace_scope.try_wait());
  });
}

TEST_P(latch, lets_nobody_through_before_and_everybody_afterwards) {
  here([] {
    weft::latch l(8);
    std::atomic<int> arrived = 0;
    {
      test::crew crew;
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&] {
          ++arrived;
          l.arrive_and_wait();
          EXPECT_EQ(arrived.load(), 8);
        });
        crew.either(i, [&] {
          l.wait();
          EXPECT_EQ(arrived.load(), 8);
        });
      }
    }
    EXPECT_TRUE(l.try_wait());
  });
}

TEST_P(latch, publishes_what_was_done_before_the_count) {
  here([] {
    for (int round = 0; round < 200; ++round) {
      int data[4] = {};
      weft::latch l(4);
      test::crew crew;
      for (int i = 0; i < 4; ++i) {
        crew.either(i, [&, i] {
          data[i] = i + 1;
          l.count_down();
        });
        if (round >= 10 && i == 0) break;
      }
      if (round >= 10) l.count_down(3);
      l.wait();
      EXPECT_EQ(data[0], 1);
      if (round < 10) {
        EXPECT_EQ(data[1] + data[2] + data[3], 9);
      }
    }
  });
}

TEST_P(latch, a_count_below_zero_is_a_logic_error) {
  here([] {
    weft::latch l(1);
    EXPECT_THROW(l.count_down(2), std::logic_error);
    EXPECT_THROW(l.count_down(-1), std::logic_error);
    l.count_down();
    EXPECT_THROW(l.count_down(), std::logic_error);
    l.wait();
    EXPECT_THROW(weft::latch(-1), std::logic_error);
  });
}

TEST_P(latch, may_be_destroyed_once_wait_has_returned) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(2000, 500, 300));
    for (int i = 0; i < rounds; ++i) {
      auto l = std::make_unique<weft::latch>(2);
      weft::go([l = l.get()] { l->count_down(); });
      weft::go([l = l.get()] { l->count_down(); });
      l->wait();
    }
  });
}

}  // namespace
