// set_max_procs() while everything runs.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/build.h"

namespace {

using namespace std::chrono_literals;

TEST(set_max_procs, returns_what_was_before_and_takes_effect_at_once) {
  weft::run(
      [] {
        EXPECT_EQ(weft::runtime::set_max_procs(4), 2);
        EXPECT_EQ(weft::runtime::max_procs(), 4);
        EXPECT_EQ(weft::runtime::set_max_procs(1), 4);
        EXPECT_EQ(weft::runtime::max_procs(), 1);
        EXPECT_EQ(weft::runtime::set_max_procs(2), 1);
      },
      {.procs = 2});
}

TEST(set_max_procs, changes_nothing_below_one) {
  weft::run(
      [] {
        EXPECT_EQ(weft::runtime::set_max_procs(0), 2);
        EXPECT_EQ(weft::runtime::set_max_procs(-3), 2);
        EXPECT_EQ(weft::runtime::max_procs(), 2);
      },
      {.procs = 2});
}

TEST(set_max_procs, loses_no_goroutine_and_no_timer) {
  const int rounds = test::under_sanitizer ? 10 : 40;
  weft::run(
      [&] {
        std::atomic<int> counted{0};
        weft::wait_group wg;
        for (int r = 0; r < rounds; ++r) {
          for (int i = 0; i < 300; ++i) {
            wg.go([&, i] {
              if (i % 3 == 0) weft::sleep_for(std::chrono::microseconds(i * 10));
              if (i % 3 == 1) weft::yield();
              ++counted;
            });
          }
          weft::runtime::set_max_procs(r % 5 == 0 ? 1 : 1 + (r * 7) % 16);
        }
        wg.wait();
        EXPECT_EQ(counted, rounds * 300);
      },
      {.procs = 2});
}

TEST(set_max_procs, works_from_many_goroutines_and_threads_at_once) {
  weft::run(
      [] {
        weft::wait_group wg;
        for (int i = 0; i < 8; ++i) {
          wg.go([i] {
            for (int k = 0; k < 20; ++k) {
              weft::runtime::set_max_procs(1 + (i + k) % 6);
              weft::yield();
            }
          });
        }
        std::thread outside([] {
          for (int k = 0; k < 20; ++k) weft::runtime::set_max_procs(1 + k % 6);
        });
        wg.wait();
        weft::blocking([&] { outside.join(); });
      },
      {.procs = 2});
}

TEST(set_max_procs, works_while_a_goroutine_spins_in_its_own_code) {
  weft::run(
      [] {
        std::atomic<bool> stop{false};
        weft::wait_group wg;
        for (int i = 0; i < 3; ++i) {
          wg.go([&] {
            while (!stop.load(std::memory_order_relaxed)) {
            }
          });
        }
        for (int i = 1; i <= 6; ++i) weft::runtime::set_max_procs(i);
        for (int i = 6; i >= 1; --i) weft::runtime::set_max_procs(i);
        stop = true;
        wg.wait();
      },
      {.procs = 4});
}

TEST(set_max_procs, before_a_start_counts_for_that_start) {
  weft::runtime::set_max_procs(3);
  weft::run([] { EXPECT_EQ(weft::runtime::max_procs(), 3); });
}

TEST(set_max_procs, between_two_runs_says_what_it_was_asked_for_before) {
  weft::run([] {}, {.procs = 4});
  weft::runtime::set_max_procs(7);
  EXPECT_EQ(weft::runtime::max_procs(), 7);
  EXPECT_EQ(weft::runtime::set_max_procs(3), 7);
  weft::run([] { EXPECT_EQ(weft::runtime::max_procs(), 3); });
}

}  // namespace
