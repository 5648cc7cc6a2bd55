// run(): a main goroutine, and what is left behind when it returns.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/await.h"

namespace {

using namespace std::chrono_literals;

TEST(run, returns_what_the_function_returns) {
  EXPECT_EQ(weft::run([] { return 42; }), 42);
  EXPECT_EQ(weft::run([] { return -1; }), -1);
}

TEST(run, returns_zero_for_a_function_that_returns_nothing) {
  EXPECT_EQ(weft::run([] {}), 0);
}

int plain_function() { return 7; }

TEST(run, takes_a_function_a_function_pointer_and_a_move_only_object) {
  EXPECT_EQ(weft::run(plain_function), 7);
  EXPECT_EQ(weft::run(&plain_function), 7);
  EXPECT_EQ(weft::run([p = std::make_unique<int>(8)] { return *p; }), 8);
}

TEST(run, takes_a_mutable_function_object) {
  EXPECT_EQ(weft::run([n = 0]() mutable { return ++n; }), 1);
  auto counter = [n = 0]() mutable { return ++n; };
  EXPECT_EQ(weft::run(counter), 1);
}

TEST(run, runs_its_function_as_a_goroutine) {
  bool inside = false;
  weft::run([&] { inside = weft::in_goroutine(); });
  EXPECT_TRUE(inside);
  EXPECT_FALSE(weft::in_goroutine());
}

TEST(run, blocks_its_caller_until_the_function_has_returned) {
  std::atomic<int> steps = 0;
  weft::run([&] {
    for (int i = 0; i < 1000; ++i) {
      weft::yield();
      ++steps;
    }
  });
  EXPECT_EQ(steps, 1000);
}

TEST(run, may_be_called_again_and_again) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(weft::run([i] { return weft::async([i] { return i; }).get(); }), i);
  }
}

TEST(run, may_be_called_again_with_other_options) {
  for (const int procs : {1, 4, 2, 32, 3, 1, 8}) {
    const int seen = weft::run(
        [] {
          std::vector<weft::future<int>> children;
          for (int i = 0; i < 100; ++i) children.push_back(weft::async([] { return 1; }));
          int sum = 0;
          for (auto& child : children) sum += child.get();
          EXPECT_EQ(sum, 100);
          return weft::runtime::max_procs();
        },
        {.procs = procs});
    EXPECT_EQ(seen, procs);
  }
}

TEST(run, may_be_called_by_one_thread_after_the_other) {
  for (int i = 0; i < 20; ++i) {
    int result = 0;
    std::thread([&] { result = weft::run([i] { return weft::async([i] { return i; }).get(); }); }).join();
    ASSERT_EQ(result, i);
  }
}

TEST(run, inside_a_goroutine_is_a_logic_error) {
  weft::run([] { EXPECT_THROW(weft::run([] {}), std::logic_error); });
  EXPECT_EQ(weft::run([] { return 3; }), 3);
}

struct custom_error {
  std::string text;
};

TEST(run, lets_an_exception_that_leaves_the_function_leave_run) {
  try {
    weft::run([]() -> int {
      weft::yield();
      throw custom_error{"from the main goroutine"};
    });
    FAIL() << "run returned";
  } catch (const custom_error& e) {
    EXPECT_EQ(e.text, "from the main goroutine");
  }
}

TEST(run, may_be_called_again_after_an_exception_left_it) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_THROW(weft::run([] { throw std::runtime_error("once more"); }), std::runtime_error);
    EXPECT_EQ(weft::run([i] { return i; }), i);
  }
}

TEST(run, leaves_no_exception_in_flight_after_one_left_it) {
  try {
    weft::run([] { throw std::runtime_error("gone"); });
  } catch (const std::runtime_error&) {
    EXPECT_NE(std::current_exception(), nullptr);
  }
  EXPECT_EQ(std::current_exception(), nullptr);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(run, called_inside_a_catch_block_leaves_the_callers_exception_alone) {
  try {
    throw std::runtime_error("the caller's");
  } catch (...) {
    weft::run([] {
      EXPECT_EQ(std::current_exception(), nullptr);
      try {
        throw std::logic_error("the goroutine's");
      } catch (const std::logic_error&) {
        weft::yield();
      }
    });
    EXPECT_THROW(throw, std::runtime_error);
  }
}

TEST(run, destroys_the_function_it_was_given) {
  auto token = std::make_shared<int>(0);
  weft::run([token] {});
  EXPECT_EQ(token.use_count(), 1);
}

// Goroutines that outlive their run(): each counts its steps until it is told to end.
struct leftovers {
  static constexpr int count = 20;

  std::atomic<bool> stop{false};
  std::atomic<int> ended{0};
  std::atomic<long> steps[count] = {};

  void spawn() {
    for (auto& own : steps) {
      weft::go([this, &own] {
        while (!stop) {
          ++own;
          weft::yield();
        }
        ++ended;
      });
    }
  }

  std::vector<long> snapshot() const {
    std::vector<long> result;
    for (const auto& own : steps) result.push_back(own.load());
    return result;
  }

  bool all_are_past(const std::vector<long>& then) const {
    for (int i = 0; i < count; ++i) {
      if (steps[i] <= then[static_cast<std::size_t>(i)] + 10) return false;
    }
    return true;
  }

  // A goroutine that was running when its run() ended goes on to its next call into weft, and no further.
  bool any_took_more_than_one_step_since(const std::vector<long>& then) const {
    for (int i = 0; i < count; ++i) {
      if (steps[i] > then[static_cast<std::size_t>(i)] + 1) return true;
    }
    return false;
  }

  void finish() {
    stop = true;
    test::await([this] { return ended == count; });
  }
};

TEST(run, freezes_the_goroutines_left_when_it_returns) {
  for (const int procs : {1, 2, 8}) {
    leftovers left;
    weft::run(
        [&] {
          left.spawn();
          test::await([&] { return left.all_are_past(std::vector<long>(leftovers::count)); });
        },
        {.procs = procs});
    const auto then = left.snapshot();
    EXPECT_TRUE(test::stays_false(30ms, [&] { return left.any_took_more_than_one_step_since(then); }));
    weft::run([&] { left.finish(); });
  }
}

TEST(run, continues_the_goroutines_that_an_earlier_run_left) {
  leftovers left;
  weft::run(
      [&] {
        left.spawn();
        test::await([&] { return left.all_are_past(std::vector<long>(leftovers::count)); });
      },
      {.procs = 4});
  for (const int procs : {1, 8, 2, 1, 32}) {
    const auto then = left.snapshot();
    weft::run([&] { test::await([&] { return left.all_are_past(then); }); }, {.procs = procs});
  }
  weft::run([&] { left.finish(); }, {.procs = 2});
}

TEST(run, freezes_the_goroutines_left_when_an_exception_leaves_it) {
  leftovers left;
  EXPECT_THROW(weft::run([&] {
                 left.spawn();
                 test::await([&] { return left.all_are_past(std::vector<long>(leftovers::count)); });
                 throw std::runtime_error("leaving");
               }),
               std::runtime_error);
  const auto then = left.snapshot();
  EXPECT_TRUE(test::stays_false(30ms, [&] { return left.any_took_more_than_one_step_since(then); }));
  weft::run([&] { left.finish(); });
}

TEST(run, keeps_goroutines_that_had_not_begun_for_the_next_run) {
  for (const int procs : {1, 2}) {
    constexpr int count = 1000;
    std::atomic<int> ran = 0;
    weft::run(
        [&] {
          for (int i = 0; i < count; ++i) weft::go([&] { ++ran; });
        },
        {.procs = procs});
    const int then = ran;
    EXPECT_TRUE(test::stays_false(10ms, [&] { return ran > then + procs; }));
    weft::run([&] { test::await([&] { return ran == count; }); }, {.procs = procs});
    EXPECT_EQ(ran, count);
  }
}

TEST(run, keeps_goroutines_that_were_parked_for_the_next_run) {
  constexpr int count = 100;
  std::atomic<bool> release = false;
  std::atomic<int> waiting = 0;
  std::atomic<int> done = 0;
  weft::run(
      [&] {
        for (int i = 0; i < count; ++i) {
          weft::go([&, i] {
            auto child = weft::async([&, i] {
              test::await([&] { return release.load(); });
              return i;
            });
            ++waiting;
            EXPECT_EQ(child.get(), i);
            ++done;
          });
        }
        test::await([&] { return waiting == count; });
      },
      {.procs = 3});
  EXPECT_EQ(done, 0);
  release = true;
  weft::run([&] { test::await([&] { return done == count; }); }, {.procs = 2});
  EXPECT_EQ(done, count);
}

TEST(run, lets_a_plain_thread_see_a_result_that_only_the_next_run_produces) {
  std::atomic<bool> release = false;
  weft::future<int> late;
  weft::run([&] {
    late = weft::async([&] {
      test::await([&] { return release.load(); });
      return 5;
    });
  });
  EXPECT_EQ(late.wait_for(0ms), std::future_status::timeout);
  release = true;
  int seen = 0;
  std::thread reader([&] { seen = late.get(); });
  weft::run([&] { test::await_solitude(); });
  reader.join();
  EXPECT_EQ(seen, 5);
}

}  // namespace
