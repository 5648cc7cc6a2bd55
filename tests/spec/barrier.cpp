// barrier: std's, for goroutines and plain threads.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"

namespace {

struct completion {
  int* count;
  void operator()() noexcept { ++*count; }
};

static_assert(weft::barrier<>::max() >= 1'000'000'000);
static_assert(!std::is_copy_constructible_v<weft::barrier<>>);
static_assert(std::is_move_constructible_v<weft::barrier<>::arrival_token>);
static_assert(!std::is_copy_constructible_v<weft::barrier<>::arrival_token>);
static_assert(std::is_same_v<decltype(weft::barrier(2, std::declval<completion>())), weft::barrier<completion>>);

class barrier : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, barrier, test::everywhere(), test::name_of);

TEST_P(barrier, nobody_begins_a_phase_before_all_have_ended_the_one_before) {
  here([] {
    constexpr int members = 6;
    const int phases = static_cast<int>(test::scaled(300, 100, 60));
    weft::barrier b(members);
    std::vector<std::atomic<int>> arrived(static_cast<std::size_t>(phases));
    test::crew crew;
    for (int i = 0; i < members; ++i) {
      crew.either(i, [&] {
        for (auto& phase : arrived) {
          ++phase;
          b.arrive_and_wait();
          EXPECT_EQ(phase.load(), members);
        }
      });
    }
  });
}

TEST_P(barrier, the_completion_runs_once_a_phase_before_anybody_goes_on) {
  here([] {
    constexpr int members = 4, phases = 100;
    int completed = 0;  // not atomic: the barrier orders it
    weft::barrier b(members, completion{&completed});
    {
      test::crew crew;
      for (int i = 0; i < members; ++i) {
        crew.either(i, [&] {
          for (int phase = 1; phase <= phases; ++phase) {
            b.arrive_and_wait();
            EXPECT_EQ(completed, phase);  // the next needs this one's arrival
          }
        });
      }
    }
    EXPECT_EQ(completed, phases);
  });
}

TEST_P(barrier, arrive_does_not_wait_and_its_token_can_be_waited_for) {
  here([] {
    int completed = 0;
    weft::barrier b(3, completion{&completed});
    auto first = b.arrive();
    auto both = b.arrive(2);
    EXPECT_EQ(completed, 1);
    b.wait(std::move(first));
    b.wait(std::move(both));
    auto next = b.arrive(2);
    test::crew crew;
    crew.goroutine([&] { static_cast<void>(b.arrive()); });
    b.wait(std::move(next));
    EXPECT_EQ(completed, 2);
  });
}

TEST_P(barrier, who_drops_out_is_not_expected_any_more) {
  here([] {
    int completed = 0;
    weft::barrier b(3, completion{&completed});
    auto token = b.arrive(2);
    b.arrive_and_drop();
    b.wait(std::move(token));
    EXPECT_EQ(completed, 1);
    auto of_two = b.arrive(2);
    b.wait(std::move(of_two));
    EXPECT_EQ(completed, 2);

    weft::barrier shrinking(6);
    test::crew crew;
    for (int i = 0; i < 6; ++i) {
      crew.either(i, [&, i] {
        for (int phase = 0; phase < i; ++phase) shrinking.arrive_and_wait();
        shrinking.arrive_and_drop();
      });
    }
  });
}

TEST_P(barrier, a_completion_need_not_say_that_it_does_not_throw) {
  here([] {
    int completed = 0;
    weft::barrier b(1, [&] { ++completed; });
    weft::barrier<std::function<void()>> c(1, [&] { ++completed; });
    b.arrive_and_wait();
    c.arrive_and_wait();
    EXPECT_EQ(completed, 2);
  });
}

TEST_P(barrier, too_many_arrivals_are_a_logic_error) {
  here([] {
    weft::barrier b(2);
    EXPECT_THROW(static_cast<void>(b.arrive(3)), std::logic_error);
    EXPECT_THROW(static_cast<void>(b.arrive(0)), std::logic_error);
    auto token = b.arrive(2);
    b.wait(std::move(token));
    EXPECT_THROW(weft::barrier(-1), std::logic_error);
  });
}

TEST_P(barrier, may_be_destroyed_once_wait_has_returned) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(2000, 500, 300));
    for (int i = 0; i < rounds; ++i) {
      auto b = std::make_unique<weft::barrier<>>(2);
      auto token = b->arrive();
      weft::go([b = b.get()] { static_cast<void>(b->arrive()); });
      b->wait(std::move(token));
    }
  });
}

}  // namespace
