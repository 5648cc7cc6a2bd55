// goroutine_id(), in_goroutine() and yield(): what a goroutine is to itself.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/await.h"
#include "support/build.h"
#include "support/migrate.h"

namespace {

TEST(goroutine_id, is_zero_outside_of_goroutines) {
  EXPECT_EQ(weft::goroutine_id(), 0u);
  std::thread([] { EXPECT_EQ(weft::goroutine_id(), 0u); }).join();
  weft::run([] {});
  EXPECT_EQ(weft::goroutine_id(), 0u);
}

TEST(goroutine_id, is_not_zero_in_a_goroutine) {
  weft::run([] {
    EXPECT_NE(weft::goroutine_id(), 0u);
    EXPECT_NE(weft::async([] { return weft::goroutine_id(); }).get(), 0u);
  });
}

TEST(goroutine_id, stays_the_same_for_the_life_of_the_goroutine) {
  weft::run(
      [] {
        std::vector<weft::future<void>> all;
        for (int i = 0; i < 50; ++i) {
          all.push_back(weft::async([] {
            const auto id = weft::goroutine_id();
            for (int step = 0; step < 200; ++step) {
              weft::yield();
              ASSERT_EQ(weft::goroutine_id(), id);
              weft::async([] {}).get();
              ASSERT_EQ(weft::goroutine_id(), id);
            }
          }));
        }
        for (auto& one : all) one.get();
      },
      {.procs = 4});
}

TEST(goroutine_id, stays_the_same_on_another_thread) {
  weft::run(
      [] {
        const auto id = weft::goroutine_id();
        test::resume_on_another_thread();
        EXPECT_EQ(weft::goroutine_id(), id);
        EXPECT_TRUE(weft::in_goroutine());
      },
      {.procs = 2});
}

TEST(goroutine_id, is_never_given_twice) {
  constexpr std::size_t each = test::scaled(50'000, 5'000, 5'000);
  std::vector<std::uint64_t> ids;
  for (const int procs : {1, 2, 8}) {
    std::vector<std::uint64_t> found(each);
    std::atomic<std::size_t> done = 0;
    ids.push_back(0);
    weft::run(
        [&] {
          ids.back() = weft::goroutine_id();
          for (auto& id : found) {
            weft::go([&] {
              id = weft::goroutine_id();
              ++done;
            });
          }
          test::await([&] { return done == each; });
        },
        {.procs = procs});
    ids.insert(ids.end(), found.begin(), found.end());
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_NE(ids.front(), 0u);
}

TEST(in_goroutine, tells_goroutines_from_plain_threads) {
  EXPECT_FALSE(weft::in_goroutine());
  weft::run([] {
    EXPECT_TRUE(weft::in_goroutine());
    EXPECT_TRUE(weft::async([] { return weft::in_goroutine(); }).get());
    std::thread([] { EXPECT_FALSE(weft::in_goroutine()); }).join();
    EXPECT_TRUE(weft::in_goroutine());
  });
  EXPECT_FALSE(weft::in_goroutine());
}

TEST(yield, returns_when_nobody_else_wants_to_run) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          for (int i = 0; i < 100'000; ++i) weft::yield();
        },
        {.procs = procs});
  }
}

TEST(yield, lets_every_other_goroutine_run) {
  for (const int procs : {1, 2, 8}) {
    constexpr int count = static_cast<int>(test::scaled(1000, 1000, 300));
    std::atomic<int> arrived = 0;
    std::atomic<int> left = 0;
    weft::run(
        [&] {
          for (int i = 0; i < count; ++i) {
            weft::go([&] {
              ++arrived;
              while (arrived < count) weft::yield();  // ends only if all the others get their turn
              ++left;
            });
          }
          test::await([&] { return left == count; });
        },
        {.procs = procs});
  }
}

TEST(yield, may_be_called_by_a_thread_that_is_no_goroutine) {
  for (int i = 0; i < 100; ++i) weft::yield();
}

// Values that the compiler keeps in registers across the call must be there after it, on whichever thread.
template <class Number>
Number mix_across_yields(Number seed, int rounds) {
  Number a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4, f = seed + 5, g = seed + 6, h = seed + 7;
  for (int i = 0; i < rounds; ++i) {
    weft::yield();
    a += b * 2;
    b += c * 3;
    c += d * 5;
    d += e * 7;
    weft::yield();
    e += f * 11;
    f += g * 13;
    g += h * 17;
    h += a * 19;
  }
  return a + b + c + d + e + f + g + h;
}

template <class Number>
Number mix_without_yields(Number seed, int rounds) {
  Number v[8];
  for (int i = 0; i < 8; ++i) v[i] = seed + static_cast<Number>(i);
  const Number factor[8] = {2, 3, 5, 7, 11, 13, 17, 19};
  for (int i = 0; i < rounds; ++i) {
    for (int k = 0; k < 8; ++k) v[k] += v[(k + 1) % 8] * factor[k];
  }
  return v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
}

TEST(yield, keeps_integer_and_floating_point_registers) {
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [] {
          std::vector<weft::future<void>> all;
          for (int i = 0; i < 40; ++i) {
            all.push_back(weft::async([i] {
              for (int rounds = 1; rounds < 40; ++rounds) {
                const auto n = static_cast<std::uint64_t>(i);
                ASSERT_EQ(mix_across_yields<std::uint64_t>(n, rounds), mix_without_yields<std::uint64_t>(n, rounds));
                // Small enough for the sums to be exact.
                ASSERT_EQ(mix_across_yields<double>(i, rounds % 8), mix_without_yields<double>(i, rounds % 8));
              }
            }));
          }
          for (auto& one : all) one.get();
        },
        {.procs = procs});
  }
}

}  // namespace
