// options, WEFTPROCS, and the numbers in weft::runtime.
#include <gtest/gtest.h>
#include <sched.h>
#include <weft/weft.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/await.h"
#include "support/subprocess.h"
#include "support/without_preemption.h"

namespace {

int cpus_of_this_process() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// Lets `count` goroutines, the caller among them, run at the same time: each keeps its P until all are there.
int rendezvous_of(int count) {
  std::atomic<int> arrived = 0;
  std::atomic<int> left = 0;
  const auto attend = [&] {
    ++arrived;
    test::spin_until([&] { return arrived == count; });
    ++left;
  };
  for (int i = 1; i < count; ++i) weft::go(attend);
  attend();
  test::await([&] { return left == count; });
  return arrived;
}

TEST(options, procs_is_the_number_of_ps) {
  for (const int procs : {1, 2, 3, 8, 32}) {
    weft::run(
        [&] {
          EXPECT_EQ(weft::runtime::max_procs(), procs);
          EXPECT_EQ(rendezvous_of(procs), procs);
        },
        {.procs = procs});
  }
}

TEST(options, no_more_goroutines_run_at_once_than_there_are_ps) {
  for (const int procs : {1, 2, 3}) {
    std::atomic<int> running = 0;
    std::atomic<int> highest = 0;
    std::atomic<int> ended = 0;
    constexpr int count = 300;
    weft::run(
        [&] {
          for (int i = 0; i < count; ++i) {
            weft::go([&] {
              const int now = ++running;
              for (int seen = highest; now > seen && !highest.compare_exchange_weak(seen, now);) {
              }
              for (int spin = 0; spin < 2000; ++spin) running.load();
              --running;
              ++ended;
            });
          }
          test::await([&] { return ended == count; });
        },
        {.procs = procs});
    EXPECT_LE(highest, procs);
  }
}

TEST(options, procs_default_to_what_the_machine_allows) {
  weft::run([] {
    EXPECT_GE(weft::runtime::max_procs(), 1);
    EXPECT_LE(weft::runtime::max_procs(), weft::runtime::num_cpu());
  });
}

TEST(options, that_make_no_sense_are_a_logic_error_of_run) {
  const auto nothing = [] { ADD_FAILURE() << "it ran"; };
  EXPECT_THROW(weft::run(nothing, {.procs = -1}), std::logic_error);
  EXPECT_THROW(weft::run(nothing, {.procs = std::numeric_limits<int>::min()}), std::logic_error);
  EXPECT_THROW(weft::run(nothing, {.max_threads = -1}), std::logic_error);
  EXPECT_THROW(weft::run(nothing, {.stack_size = std::numeric_limits<std::size_t>::max()}), std::logic_error);
  EXPECT_THROW(weft::run(nothing, {.stack_size = std::numeric_limits<std::size_t>::max() / 2}), std::logic_error);
  EXPECT_EQ(weft::run([] { return 1; }), 1);
}

TEST(options, that_make_no_sense_are_a_logic_error_of_start) {
  EXPECT_THROW(weft::start({.procs = -1}), std::logic_error);
  EXPECT_THROW(weft::start({.stack_size = std::numeric_limits<std::size_t>::max()}), std::logic_error);
  EXPECT_EQ(weft::run([] { return 1; }), 1);
}

TEST(options, a_stack_size_that_no_machine_has_is_a_logic_error_of_go) {
  const auto nothing = [] { ADD_FAILURE() << "it ran"; };
  weft::run([&] {
    test::await_solitude();
    EXPECT_THROW(weft::go({.stack_size = std::numeric_limits<std::size_t>::max()}, nothing),
                 std::logic_error);
    EXPECT_THROW(weft::go({.stack_size = std::numeric_limits<std::size_t>::max() / 2}, nothing),
                 std::logic_error);
    EXPECT_EQ(weft::runtime::num_goroutine(), 1u);
  });
}

TEST(options, a_stack_size_too_small_to_be_of_use_is_raised_or_refused) {
  try {
    EXPECT_EQ(weft::run([] { return std::to_string(weft::goroutine_id()).empty() ? 0 : 1; }, {.stack_size = 1}), 1);
  } catch (const std::logic_error&) {
  }
}

TEST(num_cpu, is_what_affinity_allows) {
  EXPECT_EQ(weft::runtime::num_cpu(), cpus_of_this_process());
  weft::run([] { EXPECT_EQ(weft::runtime::num_cpu(), cpus_of_this_process()); });
}

TEST(num_goroutine, counts_the_goroutines_that_exist) {
  weft::run(
      [] {
        test::await_solitude();
        std::atomic<bool> release = false;
        std::vector<weft::future<void>> all;
        for (std::size_t i = 0; i < 100; ++i) {
          all.push_back(weft::async([&] { test::await([&] { return release.load(); }); }));
          EXPECT_EQ(weft::runtime::num_goroutine(), i + 2);
        }
        for (int i = 0; i < 1000; ++i) weft::yield();
        EXPECT_EQ(weft::runtime::num_goroutine(), 101u);
        release = true;
        for (auto& one : all) one.wait();
        test::await_solitude();
      },
      {.procs = 2});
}

TEST(num_goroutine, is_zero_when_no_goroutine_is_left) {
  weft::run([] { weft::async([] {}).get(); });
  weft::run([] { test::await_solitude(); });
  EXPECT_EQ(weft::runtime::num_goroutine(), 0u);
}

TEST(num_goroutine, counts_the_frozen_ones_too) {
  std::atomic<bool> stop = false;
  weft::run([&] {
    test::await_solitude();
    for (int i = 0; i < 10; ++i) weft::go([&] { test::await([&] { return stop.load(); }); });
  });
  EXPECT_EQ(weft::runtime::num_goroutine(), 10u);
  stop = true;
  weft::run([] { test::await_solitude(); });
}

TEST(num_goroutine, does_not_count_plain_threads) {
  weft::start({.procs = 2});
  EXPECT_EQ(weft::async([] { return 1; }).get(), 1);
  test::await([] { return weft::runtime::num_goroutine() == 0; });
  weft::shutdown();
}

TEST(num_thread, is_at_least_the_number_of_goroutines_that_run_at_once) {
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [&] {
          rendezvous_of(procs);
          EXPECT_GE(weft::runtime::num_thread(), static_cast<std::size_t>(procs));
        },
        {.procs = procs});
  }
}

TEST(num_thread, does_not_grow_with_the_number_of_goroutines_and_runs) {
  const auto spread_out = [] {
    weft::run(
        [] {
          std::vector<weft::future<void>> all;
          for (int i = 0; i < 1000; ++i) all.push_back(weft::async([] { weft::yield(); }));
          for (auto& one : all) one.get();
        },
        {.procs = 4});
    return weft::runtime::num_thread();
  };
  const auto first = spread_out();
  for (int i = 0; i < 20; ++i) spread_out();
  EXPECT_LE(spread_out(), first + 4);
}

const test::scenario prints_max_procs("prints_max_procs",
                                      [] { weft::run([] { std::printf("%d\n", weft::runtime::max_procs()); }); });
const test::scenario prints_max_procs_of_run_with_three("prints_max_procs_of_run_with_three", [] {
  weft::run([] { std::printf("%d\n", weft::runtime::max_procs()); }, {.procs = 3});
});
const test::scenario prints_max_procs_of_start("prints_max_procs_of_start", [] {
  weft::start();
  std::printf("%d\n", weft::async([] { return weft::runtime::max_procs(); }).get());
});
const test::scenario prints_max_procs_of_go("prints_max_procs_of_go", [] {
  std::printf("%d\n", weft::async([] { return weft::runtime::max_procs(); }).get());
});

TEST(WEFTPROCS, is_the_number_of_ps_when_options_say_none) {
  for (const char* const procs : {"1", "3", "17"}) {
    const test::environment with{{"WEFTPROCS", procs}};
    EXPECT_EQ(prints_max_procs.run(with).out, procs + std::string("\n"));
    EXPECT_EQ(prints_max_procs_of_start.run(with).out, procs + std::string("\n"));
    EXPECT_EQ(prints_max_procs_of_go.run(with).out, procs + std::string("\n"));
  }
}

TEST(WEFTPROCS, does_not_overrule_options) {
  EXPECT_EQ(prints_max_procs_of_run_with_three.run({{"WEFTPROCS", "5"}}).out, "3\n");
}

TEST(WEFTPROCS, that_is_no_positive_number_is_ignored) {
  const std::string by_default = prints_max_procs.run({{"WEFTPROCS", ""}}).out;
  for (const char* const nonsense : {"0", "-2", "many", "99999999999999999999"}) {
    EXPECT_EQ(prints_max_procs.run({{"WEFTPROCS", nonsense}}).out, by_default) << nonsense;
  }
}

}  // namespace
