// wait_group: Go's sync.WaitGroup.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <climits>
#include <memory>
#include <stdexcept>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/live.h"

namespace {

static_assert(!std::is_copy_constructible_v<weft::wait_group>);
static_assert(std::is_nothrow_default_constructible_v<weft::wait_group>);
constinit weft::wait_group at_namespace_scope;

class wait_group : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, wait_group, test::everywhere(), test::name_of);

TEST_P(wait_group, wait_returns_at_once_when_nothing_was_added) {
  here([] {
    weft::wait_group wg;
    wg.wait();
    wg.add(0);
    wg.wait();
    at_namespace_scope.wait();
  });
}

TEST_P(wait_group, wait_waits_for_all_that_were_added) {
  here([] {
    weft::wait_group wg;
    std::atomic<int> ended = 0;
    wg.add(10);
    test::crew crew;
    for (int i = 0; i < 10; ++i) {
      crew.either(i, [&] {
        weft::yield();
        ++ended;
        wg.done();
      });
    }
    wg.wait();
    EXPECT_EQ(ended.load(), 10);
  });
}

TEST_P(wait_group, done_publishes_what_came_before_it) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(2000, 300, 200));
    weft::wait_group wg;
    for (int i = 0; i < rounds; ++i) {
      int a = 0, b = 0;
      wg.add(2);
      weft::go([&] {
        a = 1;
        wg.done();
      });
      weft::go([&] {
        b = 1;
        wg.done();
      });
      wg.wait();
      EXPECT_EQ(a + b, 2);
    }
  });
}

TEST_P(wait_group, many_may_wait) {
  here([] {
    for (int round = 0; round < 20; ++round) {
      weft::wait_group wg;
      wg.add();
      std::atomic<int> through = 0;
      std::atomic<bool> done = false;
      test::crew crew;
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&] {
          wg.wait();
          EXPECT_TRUE(done.load());
          ++through;
        });
      }
      if (round % 2 == 0) weft::yield();
      done = true;
      wg.done();
      crew.wait();
      EXPECT_EQ(through.load(), 8);
    }
  });
}

TEST_P(wait_group, goes_on_counting_what_is_added_while_somebody_waits) {
  here([] {
    weft::wait_group wg;
    std::atomic<int> ended = 0;
    // Each starts two more, down to some depth, while main waits.
    struct starter {
      static void go(weft::wait_group& group, std::atomic<int>& count, int depth) {
        group.go([&group, &count, depth] {
          if (depth > 0) {
            go(group, count, depth - 1);
            go(group, count, depth - 1);
          }
          ++count;
        });
      }
    };
    starter::go(wg, ended, 8);
    wg.wait();
    EXPECT_EQ(ended.load(), 511);
  });
}

TEST_P(wait_group, add_of_a_negative_number_counts_down) {
  here([] {
    weft::wait_group wg;
    wg.add(5);
    weft::go([&] { wg.add(-5); });
    wg.wait();
  });
}

TEST_P(wait_group, a_negative_counter_is_a_logic_error_and_changes_nothing) {
  here([] {
    weft::wait_group wg;
    EXPECT_THROW(wg.done(), std::logic_error);
    EXPECT_THROW(wg.add(-1), std::logic_error);
    EXPECT_THROW(wg.add(INT_MIN), std::logic_error);
    wg.wait();
    wg.add(2);
    EXPECT_THROW(wg.add(-3), std::logic_error);
    wg.done();
    wg.done();
    wg.wait();
    EXPECT_THROW(wg.done(), std::logic_error);
    wg.add(INT_MAX);
    EXPECT_THROW(wg.add(), std::logic_error);
    wg.add(-INT_MAX);
    wg.wait();
  });
}

TEST_P(wait_group, can_be_used_again) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(2000, 300, 200));
    weft::wait_group wg;
    long sum = 0;
    for (int i = 0; i < rounds; ++i) {
      wg.add();
      weft::go([&] {
        ++sum;
        wg.done();
      });
      wg.wait();
      EXPECT_EQ(sum, i + 1);
    }
  });
}

TEST_P(wait_group, go_counts_the_goroutine_until_its_function_is_destroyed) {
  here([] {
    std::atomic<int> alive = 0;
    weft::wait_group wg;
    for (int i = 0; i < 50; ++i) {
      wg.go([object = test::live(alive), large = std::vector<int>(i)] { weft::yield(); });
    }
    wg.wait();
    EXPECT_EQ(alive.load(), 0);
    wg.go([object = std::make_unique<test::live>(alive)]() mutable { object.reset(); });
    wg.wait();
    EXPECT_EQ(alive.load(), 0);
  });
}

TEST_P(wait_group, go_counts_a_goroutine_that_ends_itself) {
  here([] {
    weft::wait_group wg;
    wg.go([] { weft::exit_goroutine(); });
    wg.wait();
  });
}

TEST_P(wait_group, go_leaves_the_counter_alone_if_the_function_cannot_be_copied) {
  here([] {
    struct throws_on_copy {
      throws_on_copy() = default;
      throws_on_copy(const throws_on_copy&) { throw std::runtime_error("no"); }
      void operator()() const {}
    } f;
    weft::wait_group wg;
    EXPECT_THROW(wg.go(f), std::runtime_error);
    wg.wait();
  });
}

TEST_P(wait_group, may_be_destroyed_once_wait_has_returned) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(5000, 1000, 500));
    for (int i = 0; i < rounds; ++i) {
      auto wg = std::make_unique<weft::wait_group>();
      wg->add(2);
      weft::go([wg = wg.get()] { wg->done(); });
      weft::go([wg = wg.get()] { wg->done(); });
      wg->wait();
    }
    for (int i = 0; i < 50; ++i) {
      auto wg = std::make_unique<weft::wait_group>();
      wg->add();
      test::crew crew;
      crew.thread([wg = wg.get()] { wg->done(); });
      wg->wait();
      wg.reset();
    }
  });
}

}  // namespace

// Names that the library uses inside, beside a function object of the user's.
namespace users {
template <class F>
void spawn(F&&);
template <class F>
void make_record(F&&);
template <class F>
void submit(F&&);
struct task {
  int* done;
  void operator()() const { ++*done; }
};
}  // namespace users

namespace {

TEST(wait_group, takes_function_objects_whose_namespace_has_any_names) {
  weft::run([] {
    int done = 0;
    weft::wait_group wg;
    wg.go(users::task{&done});
    wg.wait();
    weft::async(users::task{&done}).get();
    EXPECT_EQ(done, 2);
  });
}

// Who calls go() need not be counted itself: by the time it returns, the function may have let the last of those that are
// counted go, and who waited for them may have destroyed the group.
TEST(wait_group, may_be_gone_when_go_returns) {
  const int rounds = test::under_sanitizer ? 500 : 5'000;
  weft::run([&] {
    for (int i = 0; i < rounds; ++i) {
      auto wg = std::make_unique<weft::wait_group>();
      weft::chan<int> signal;
      std::atomic<bool> returned = false;
      wg->go([signal] { signal.recv(); });
      weft::go([&, wg = wg.get()] {
        wg->go([signal] { signal.send(1); });
        returned = true;
      });
      if (i % 2 == 0) weft::yield();
      wg->wait();
      wg.reset();
      test::await([&] { return returned.load(); });
    }
  });
}

TEST(wait_group, adding_too_much_is_refused_and_changes_nothing) {
  weft::wait_group wg;
  wg.add(5);
  EXPECT_THROW(wg.add(INT_MAX), std::logic_error);
  EXPECT_THROW(wg.add(INT_MAX - 4), std::logic_error);
  wg.add(INT_MAX - 5);
  EXPECT_THROW(wg.add(1), std::logic_error);
  wg.add(-INT_MAX);
  wg.wait();
}

}  // namespace
