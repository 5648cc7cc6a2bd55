// Numbers of goroutines that no number of threads reaches.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "support/await.h"
#include "support/build.h"

namespace {

TEST(ten_million_goroutines, are_spawned_by_one_and_all_run) {
  constexpr std::size_t count = test::scaled(10'000'000, 300'000, 100'000);
  std::atomic<std::size_t> ran = 0;
  std::size_t spawned = 0;
  weft::run(
      [&] {
        for (; spawned < count; ++spawned) weft::go([&ran] { ran.fetch_add(1, std::memory_order_release); });
        test::await([&] { return ran.load(std::memory_order_acquire) == count; });
      },
      {.procs = 2});
  EXPECT_EQ(spawned, count);
  EXPECT_EQ(ran, count);
}

TEST(ten_million_goroutines, run_on_one_p) {
  constexpr std::size_t count = test::scaled(10'000'000, 300'000, 100'000);
  std::atomic<std::size_t> ran = 0;
  weft::run(
      [&] {
        for (std::size_t i = 0; i < count; ++i) weft::go([&ran] { ran.fetch_add(1, std::memory_order_release); });
        test::await([&] { return ran.load(std::memory_order_acquire) == count; });
      },
      {.procs = 1});
  EXPECT_EQ(ran, count);
}

constexpr std::size_t parked_at_once = test::scaled(1'000'000, 20'000, 3'000);

TEST(a_million_goroutines, are_parked_at_once_each_on_the_one_before) {
  for (const int procs : {1, 2}) {
    std::atomic<bool> release = false;
    std::atomic<std::size_t> begun = 0;
    std::atomic<std::size_t> ended = 0;
    weft::run(
        [&] {
          test::await_solitude();
          auto last = weft::async([&] { test::await([&] { return release.load(); }); });
          for (std::size_t i = 0; i < parked_at_once; ++i) {
            last = weft::async([&, before = std::move(last)] {
              ++begun;
              before.wait();
              ++ended;
            });
          }
          test::await([&] { return begun == parked_at_once; });
          EXPECT_EQ(ended, 0u);
          EXPECT_EQ(weft::runtime::num_goroutine(), parked_at_once + 2);
          release = true;
          last.get();
          EXPECT_EQ(ended, parked_at_once);
          test::await_solitude();
        },
        {.procs = procs});
  }
}

TEST(a_million_goroutines, are_parked_on_one_and_woken_at_once) {
  std::atomic<bool> release = false;
  std::atomic<std::size_t> begun = 0;
  std::atomic<std::size_t> ended = 0;
  weft::run(
      [&] {
        const auto gate = weft::async([&] { test::await([&] { return release.load(); }); });
        for (std::size_t i = 0; i < parked_at_once; ++i) {
          weft::go([&] {
            ++begun;
            gate.wait();
            ++ended;
          });
        }
        test::await([&] { return begun == parked_at_once; });
        EXPECT_EQ(ended, 0u);
        release = true;
        test::await([&] { return ended == parked_at_once; });
        test::await_solitude();
      },
      {.procs = 2});
  EXPECT_EQ(ended, parked_at_once);
}

TEST(a_hundred_thousand_goroutines, yield_to_each_other) {
  constexpr std::size_t count = test::scaled(100'000, 5'000, 3'000);
  constexpr int rounds = 10;
  for (const int procs : {1, 2, 8}) {
    std::atomic<std::size_t> steps = 0;
    weft::run(
        [&] {
          for (std::size_t i = 0; i < count; ++i) {
            weft::go([&steps] {
              for (int k = 0; k < rounds; ++k) {
                weft::yield();
                steps.fetch_add(1, std::memory_order_release);
              }
            });
          }
          test::await([&] { return steps.load(std::memory_order_acquire) == count * rounds; });
        },
        {.procs = procs});
    EXPECT_EQ(steps, count * rounds);
  }
}

TEST(a_million_parked_goroutines, of_a_run_that_ended_are_continued_by_the_next) {
  constexpr std::size_t count = test::scaled(100'000, 5'000, 2'000);
  std::atomic<bool> release = false;
  std::atomic<std::size_t> begun = 0;
  std::atomic<std::size_t> ended = 0;
  weft::future<void> gate;
  weft::run(
      [&] {
        gate = weft::async([&] { test::await([&] { return release.load(); }); });
        for (std::size_t i = 0; i < count; ++i) {
          weft::go([&] {
            ++begun;
            gate.wait();
            ++ended;
          });
        }
        test::await([&] { return begun == count; });
      },
      {.procs = 2});
  EXPECT_EQ(ended, 0u);
  release = true;
  weft::run([&] { test::await_solitude(); }, {.procs = 4});
  EXPECT_EQ(ended, count);
}

}  // namespace
