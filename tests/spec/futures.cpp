// async() and future, from goroutines and from plain threads alike.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/await.h"
#include "support/build.h"
#include "support/live.h"
#include "support/migrate.h"

namespace {

using namespace std::chrono_literals;

// Everything a future promises holds in a goroutine with one P, with several, and on a plain thread.
enum class place { goroutine_of_one_p, goroutine_of_many_ps, plain_thread };

class future_anywhere : public testing::TestWithParam<place> {
 protected:
  template <class F>
  void here(F f) {
    switch (GetParam()) {
      case place::goroutine_of_one_p:
        weft::run(f, {.procs = 1});
        break;
      case place::goroutine_of_many_ps:
        weft::run(f, {.procs = 4});
        break;
      case place::plain_thread:
        weft::start({.procs = 2});
        f();
        test::await([] { return weft::runtime::num_goroutine() == 0; });
        weft::shutdown();
        break;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(everywhere, future_anywhere,
                         testing::Values(place::goroutine_of_one_p, place::goroutine_of_many_ps, place::plain_thread),
                         [](const auto& where) -> std::string {
                           switch (where.param) {
                             case place::goroutine_of_one_p:
                               return "goroutine_of_one_p";
                             case place::goroutine_of_many_ps:
                               return "goroutine_of_many_ps";
                             case place::plain_thread:
                               return "plain_thread";
                           }
                           return "";
                         });

TEST_P(future_anywhere, get_returns_the_value) {
  here([] {
    EXPECT_EQ(weft::async([] { return 42; }).get(), 42);
    EXPECT_EQ(weft::async([] { return std::string("text"); }).get(), "text");
  });
}

TEST_P(future_anywhere, get_of_void_waits_for_the_end) {
  here([] {
    int written = 0;
    auto done = weft::async([&] {
      weft::yield();
      written = 1;
    });
    static_assert(std::is_void_v<decltype(done.get())>);
    done.get();
    EXPECT_EQ(written, 1);
  });
}

TEST_P(future_anywhere, get_returns_the_very_reference) {
  here([] {
    int target = 0;
    auto reference = weft::async([&]() -> int& { return target; });
    static_assert(std::is_same_v<decltype(reference), weft::future<int&>>);
    EXPECT_EQ(&reference.get(), &target);
  });
}

TEST_P(future_anywhere, get_moves_a_move_only_value_out) {
  here([] {
    auto result = weft::async([] { return std::make_unique<int>(5); });
    const std::unique_ptr<int> value = result.get();
    EXPECT_EQ(*value, 5);
  });
}

TEST_P(future_anywhere, get_returns_a_value_that_has_no_default_constructor) {
  struct strict {
    int n;
    explicit strict(int i) : n(i) {}
  };
  here([] { EXPECT_EQ(weft::async([] { return strict(3); }).get().n, 3); });
}

TEST_P(future_anywhere, get_returns_a_large_and_an_over_aligned_value) {
  struct alignas(64) block {
    int content[1000];
  };
  here([] {
    const block b = weft::async([] {
                      block made{};
                      made.content[999] = 9;
                      return made;
                    }).get();
    EXPECT_EQ(b.content[999], 9);
  });
}

TEST_P(future_anywhere, a_function_object_may_be_one_for_a_single_call) {
  struct once {
    std::unique_ptr<int> value = std::make_unique<int>(7);
    std::unique_ptr<int> operator()() && { return std::move(value); }
  };
  here([] { EXPECT_EQ(*weft::async(once{}).get(), 7); });
}

TEST_P(future_anywhere, get_rethrows_the_exception) {
  here([] {
    auto failed = weft::async([]() -> int { throw std::out_of_range("too far"); });
    try {
      failed.get();
      ADD_FAILURE() << "returned";
    } catch (const std::out_of_range& e) {
      EXPECT_STREQ(e.what(), "too far");
    }
    EXPECT_THROW(weft::async([] { throw 5; }).get(), int);
    int target = 0;
    EXPECT_THROW(weft::async([&]() -> int& {
                   weft::yield();
                   if (target == 0) throw std::runtime_error("no reference");
                   return target;
                 }).get(),
                 std::runtime_error);
  });
}

TEST_P(future_anywhere, an_exception_that_nobody_gets_is_dropped) {
  here([] {
    std::atomic<bool> thrown = false;
    {
      auto ignored = weft::async([&] {
        thrown = true;
        throw std::runtime_error("ignored");
      });
      ignored.wait();
    }
    EXPECT_TRUE(thrown);
  });
}

TEST_P(future_anywhere, get_leaves_the_future_invalid) {
  here([] {
    auto result = weft::async([] { return 1; });
    EXPECT_TRUE(result.valid());
    result.get();
    EXPECT_FALSE(result.valid());
    auto failed = weft::async([] { throw 1; });
    EXPECT_THROW(failed.get(), int);
    EXPECT_FALSE(failed.valid());
  });
}

TEST_P(future_anywhere, get_twice_is_a_logic_error) {
  here([] {
    auto result = weft::async([] { return 1; });
    result.get();
    EXPECT_THROW(result.get(), std::logic_error);
    auto done = weft::async([] {});
    done.get();
    EXPECT_THROW(done.get(), std::logic_error);
  });
}

TEST_P(future_anywhere, every_use_of_an_invalid_future_is_a_logic_error) {
  here([] {
    weft::future<int> nothing;
    EXPECT_FALSE(nothing.valid());
    EXPECT_THROW(nothing.get(), std::logic_error);
    EXPECT_THROW(nothing.wait(), std::logic_error);
    EXPECT_THROW(nothing.wait_for(0ms), std::logic_error);
    EXPECT_THROW(nothing.wait_until(std::chrono::steady_clock::now()), std::logic_error);
  });
}

TEST_P(future_anywhere, is_movable_and_leaves_an_invalid_one_behind) {
  static_assert(!std::is_copy_constructible_v<weft::future<int>>);
  static_assert(!std::is_copy_assignable_v<weft::future<int>>);
  static_assert(std::is_nothrow_move_constructible_v<weft::future<int>>);
  static_assert(std::is_nothrow_move_assignable_v<weft::future<int>>);
  here([] {
    auto first = weft::async([] { return 1; });
    auto second = std::move(first);
    EXPECT_FALSE(first.valid());
    EXPECT_TRUE(second.valid());
    first = std::move(second);
    EXPECT_TRUE(first.valid());
    EXPECT_FALSE(second.valid());
    first = weft::async([] { return 2; });
    EXPECT_EQ(first.get(), 2);
  });
}

TEST_P(future_anywhere, may_be_handed_to_another_goroutine) {
  here([] {
    auto inner = weft::async([] {
      weft::yield();
      return 4;
    });
    auto outer = weft::async([inner = std::move(inner)]() mutable { return inner.get() + 1; });
    EXPECT_EQ(outer.get(), 5);
  });
}

TEST_P(future_anywhere, may_hold_a_future) {
  here([] {
    auto outer = weft::async([] { return weft::async([] { return 6; }); });
    EXPECT_EQ(outer.get().get(), 6);
  });
}

TEST_P(future_anywhere, wait_returns_when_the_value_is_there) {
  here([] {
    std::atomic<bool> finished = false;
    auto result = weft::async([&] {
      for (int i = 0; i < 100; ++i) weft::yield();
      finished = true;
      return 3;
    });
    result.wait();
    EXPECT_TRUE(finished);
    result.wait();
    EXPECT_TRUE(result.valid());
    EXPECT_EQ(result.get(), 3);
  });
}

TEST_P(future_anywhere, wait_does_not_throw_the_exception) {
  here([] {
    auto failed = weft::async([] { throw std::runtime_error("for get only"); });
    failed.wait();
    EXPECT_EQ(failed.wait_for(0s), std::future_status::ready);
    EXPECT_THROW(failed.get(), std::runtime_error);
  });
}

TEST_P(future_anywhere, wait_for_times_out_while_there_is_no_value) {
  here([] {
    std::atomic<bool> release = false;
    auto late = weft::async([&] {
      test::await([&] { return release.load(); });
      return 1;
    });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(late.wait_for(20ms), std::future_status::timeout);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_TRUE(late.valid());
    EXPECT_EQ(late.wait_for(0ms), std::future_status::timeout);
    EXPECT_EQ(late.wait_for(-1h), std::future_status::timeout);
    EXPECT_EQ(late.wait_for(1.5ms), std::future_status::timeout);
    release = true;
    EXPECT_EQ(late.get(), 1);
  });
}

TEST_P(future_anywhere, wait_for_returns_early_when_the_value_comes) {
  here([] {
    auto soon = weft::async([] {
      for (int i = 0; i < 100; ++i) weft::yield();
      return 1;
    });
    EXPECT_EQ(soon.wait_for(1h), std::future_status::ready);
    EXPECT_EQ(soon.wait_for(0ms), std::future_status::ready);
    EXPECT_EQ(soon.wait_for(-1s), std::future_status::ready);
    EXPECT_EQ(soon.get(), 1);
  });
}

TEST_P(future_anywhere, wait_for_the_longest_duration_there_is_does_not_time_out) {
  here([] {
    const auto answer = [] {
      return weft::async([] {
        for (int i = 0; i < 100; ++i) weft::yield();
      });
    };
    EXPECT_EQ(answer().wait_for(std::chrono::nanoseconds::max()), std::future_status::ready);
    EXPECT_EQ(answer().wait_for(std::chrono::hours::max()), std::future_status::ready);
    EXPECT_EQ(answer().wait_until(std::chrono::steady_clock::time_point::max()), std::future_status::ready);
    EXPECT_EQ(answer().wait_until(std::chrono::system_clock::time_point::max()), std::future_status::ready);
  });
}

TEST_P(future_anywhere, wait_until_keeps_to_both_clocks) {
  here([] {
    std::atomic<bool> release = false;
    auto late = weft::async([&] { test::await([&] { return release.load(); }); });
    const auto steady = std::chrono::steady_clock::now() + 10ms;
    EXPECT_EQ(late.wait_until(steady), std::future_status::timeout);
    EXPECT_GE(std::chrono::steady_clock::now(), steady);
    const auto wall = std::chrono::system_clock::now() + 10ms;
    EXPECT_EQ(late.wait_until(wall), std::future_status::timeout);
    EXPECT_GE(std::chrono::system_clock::now(), wall);
    EXPECT_EQ(late.wait_until(std::chrono::steady_clock::now() - 1h), std::future_status::timeout);
    EXPECT_EQ(late.wait_until(std::chrono::system_clock::time_point::min()), std::future_status::timeout);
    release = true;
    EXPECT_EQ(late.wait_until(std::chrono::steady_clock::now() + 1h), std::future_status::ready);
    EXPECT_EQ(late.wait_until(std::chrono::system_clock::now() - 1h), std::future_status::ready);
  });
}

TEST_P(future_anywhere, a_timeout_that_races_with_the_value_loses_nothing) {
  constexpr int rounds = test::scaled(2000, 300, 300);
  here([] {
    for (int i = 0; i < rounds; ++i) {
      auto result = weft::async([i] {
        for (int step = 0; step < i % 37; ++step) weft::yield();
        return i;
      });
      while (result.wait_for(std::chrono::microseconds(1 + i % 11)) == std::future_status::timeout) {
      }
      ASSERT_EQ(result.get(), i);
    }
  });
}

TEST_P(future_anywhere, several_may_wait_for_one_value) {
  here([] {
    constexpr int waiters = 50;
    std::atomic<bool> release = false;
    std::atomic<int> waiting = 0;
    std::atomic<int> passed = 0;
    const auto gate = weft::async([&] { test::await([&] { return release.load(); }); });
    std::vector<weft::future<void>> all;
    for (int i = 0; i < waiters; ++i) {
      all.push_back(weft::async([&] {
        ++waiting;
        gate.wait();
        EXPECT_EQ(gate.wait_for(0s), std::future_status::ready);
        ++passed;
      }));
    }
    test::await([&] { return waiting == waiters; });
    EXPECT_EQ(passed, 0);
    release = true;
    gate.wait();
    for (auto& one : all) one.get();
    EXPECT_EQ(passed, waiters);
  });
}

TEST_P(future_anywhere, its_destructor_does_not_wait) {
  here([] {
    std::atomic<bool> release = false;
    std::atomic<bool> finished = false;
    {
      auto dropped = weft::async([&] {
        test::await([&] { return release.load(); });
        finished = true;
        return std::string("nobody gets this");
      });
    }
    EXPECT_FALSE(finished);
    {
      weft::async([] { return 1; });
    }
    release = true;
    test::await([&] { return finished.load(); });
  });
}

TEST_P(future_anywhere, a_value_is_destroyed_once_whoever_is_last) {
  here([] {
    std::atomic<int> alive = 0;
    for (int i = 0; i < 200; ++i) {
      auto got = weft::async([&] { return test::live(alive); });
      auto waited = weft::async([&] { return test::live(alive); });
      auto dropped = weft::async([&] {
        weft::yield();
        return test::live(alive);
      });
      got.get();
      waited.wait();
    }
    test::await([&] { return alive == 0 && weft::runtime::num_goroutine() <= 1; });
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(future_anywhere, async_takes_any_callable_without_arguments) {
  struct counter {
    int n = 0;
    int operator()() { return ++n; }
  };
  here([] {
    static const auto function = +[] { return 1; };
    EXPECT_EQ(weft::async(function).get(), 1);
    EXPECT_EQ(weft::async(std::function<int()>([] { return 2; })).get(), 2);
    EXPECT_EQ(weft::async([p = std::make_unique<int>(3)] { return *p; }).get(), 3);
    counter c;
    EXPECT_EQ(weft::async(c).get(), 1);
    EXPECT_EQ(c.n, 0) << "async copies its function, as std::async does";
    EXPECT_EQ(weft::async([big = std::vector<int>(1000, 4)] { return big[999]; }).get(), 4);
  });
}

TEST_P(future_anywhere, async_lets_an_exception_of_the_copy_leave_and_spawns_nothing) {
  struct uncopyable_in_fact {
    uncopyable_in_fact() = default;
    uncopyable_in_fact(const uncopyable_in_fact&) { throw std::runtime_error("cannot be copied"); }
    void operator()() const { ADD_FAILURE() << "was spawned"; }
  };
  here([] {
    const std::size_t alone = weft::in_goroutine() ? 1 : 0;
    test::await([&] { return weft::runtime::num_goroutine() == alone; });
    const uncopyable_in_fact f;
    EXPECT_THROW(weft::async(f), std::runtime_error);
    EXPECT_EQ(weft::runtime::num_goroutine(), alone);
  });
}

TEST_P(future_anywhere, async_destroys_its_function_once) {
  here([] {
    std::atomic<int> alive = 0;
    for (int i = 0; i < 100; ++i) weft::async([l = test::live(alive)] {}).get();
    for (int i = 0; i < 100; ++i) weft::async([l = test::live(alive)] { throw 1; }).wait();
    test::await([&] { return alive == 0; });
  });
}

TEST_P(future_anywhere, a_long_chain_of_goroutines_that_wait_for_each_other_resolves) {
  here([] {
    constexpr int length = test::scaled(20'000, 2'000, 2'000);
    auto last = weft::async([] { return 0; });
    for (int i = 0; i < length; ++i) last = weft::async([f = std::move(last)]() mutable { return f.get() + 1; });
    EXPECT_EQ(last.get(), length);
  });
}

int fibonacci(int n) {
  if (n < 2) return n;
  auto left = weft::async([n] { return fibonacci(n - 1); });
  const int right = fibonacci(n - 2);
  return left.get() + right;
}

TEST_P(future_anywhere, a_tree_of_goroutines_that_wait_for_each_other_resolves) {
  here([] {
    constexpr int n = test::scaled(20, 14, 14);
    int expected = 0;
    for (int i = 0, next = 1; i < n; ++i) expected = std::exchange(next, expected + next);
    EXPECT_EQ(fibonacci(n), expected);
  });
}

TEST(future, parks_its_goroutine_so_that_others_run) {
  weft::run(
      [] {
        std::atomic<bool> others_ran = false;
        auto result = weft::async([&] { test::await([&] { return others_ran.load(); }); });
        weft::go([&] { others_ran = true; });
        result.wait();
        EXPECT_TRUE(others_ran);
      },
      {.procs = 1});
}

TEST(future, parks_its_goroutine_during_a_timed_wait_so_that_others_run) {
  weft::run(
      [] {
        std::atomic<long> steps = 0;
        std::atomic<bool> stop = false;
        auto busy = weft::async([&] {
          while (!stop) {
            ++steps;
            weft::yield();
          }
        });
        // Once, unless the 10 ms are over before this goroutine has come to park.
        for (test::hang_limit limit(__FILE__, __LINE__); steps < 2; limit.check()) {
          EXPECT_EQ(busy.wait_for(10ms), std::future_status::timeout);
        }
        stop = true;
        EXPECT_EQ(busy.wait_for(1h), std::future_status::ready);
      },
      {.procs = 1});
}

TEST(future, a_timed_wait_ends_although_every_goroutine_is_parked) {
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [] {
          // Waits for itself, in vain, and so is parked until its time is up.
          weft::future<std::future_status> sleeper;
          std::atomic<bool> known = false;
          sleeper = weft::async([&] {
            test::await([&] { return known.load(); });
            return sleeper.wait_for(20ms);
          });
          known = true;
          while (sleeper.wait_for(1ms) == std::future_status::timeout) {
          }
          EXPECT_EQ(sleeper.get(), std::future_status::timeout);
        },
        {.procs = procs});
  }
}

TEST(future, publishes_what_was_written_before_it_to_another_thread) {
  weft::run(
      [] {
        for (int i = 0; i < 200; ++i) {
          int plain = 0;
          auto written = weft::async([&] { plain = i; });
          if (i % 2 == 0) {
            std::thread([&] {
              written.get();
              EXPECT_EQ(plain, i);
            }).join();
          } else {
            written.wait();
            EXPECT_EQ(plain, i);
          }
        }
      },
      {.procs = 2});
}

TEST(future, resumes_its_goroutine_on_the_thread_that_is_free) {
  weft::run(
      [] {
        for (int i = 0; i < 20; ++i) test::resume_on_another_thread();
      },
      {.procs = 2});
}

}  // namespace
