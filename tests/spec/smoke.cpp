// The least that must work on a new architecture. Needs no test library: see support/mini_test.h.
#if WEFT_MINI_TEST
#include "support/mini_test.h"
#else
#include <gtest/gtest.h>
#endif

#include <weft/weft.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

TEST(smoke, run_returns_what_its_function_returns) {
  EXPECT_EQ(weft::run([] { return 42; }), 42);
}

TEST(smoke, goroutines_run_on_one_p_and_on_several) {
  for (const int procs : {1, 2, 4}) {
    std::atomic<int> ran = 0;
    weft::run(
        [&] {
          for (int i = 0; i < 2000; ++i) weft::go([&ran] { ++ran; });
          while (ran != 2000) weft::yield();
        },
        {.procs = procs});
    EXPECT_EQ(ran.load(), 2000);
  }
}

TEST(smoke, goroutines_yield_to_each_other) {
  for (const int procs : {1, 2}) {
    std::atomic<int> arrived = 0;
    std::atomic<int> left = 0;
    weft::run(
        [&] {
          for (int i = 0; i < 50; ++i) {
            weft::go([&] {
              ++arrived;
              while (arrived != 50) weft::yield();
              ++left;
            });
          }
          while (left != 50) weft::yield();
        },
        {.procs = procs});
    EXPECT_EQ(left.load(), 50);
  }
}

TEST(smoke, registers_survive_a_switch) {
  const auto sum = [](double seed, bool switching) {
    double a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4, f = seed + 5, g = seed + 6, h = seed + 7;
    std::uint64_t i = 1, j = 2, k = 3, l = 5, m = 7, n = 11, o = 13, p = 17;
    for (int round = 0; round < 6; ++round) {
      if (switching) weft::yield();
      a += b, b += c, c += d, d += e, e += f, f += g, g += h, h += a;
      i += j, j += k, k += l, l += m, m += n, n += o, o += p, p += i;
    }
    return a + b + c + d + e + f + g + h + static_cast<double>(i + j + k + l + m + n + o + p);
  };
  weft::run(
      [&] {
        std::vector<weft::future<double>> all;
        for (int i = 0; i < 50; ++i) all.push_back(weft::async([&sum, i] { return sum(i, true); }));
        for (int i = 0; i < 50; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].get(), sum(i, false));
      },
      {.procs = 2});
}

TEST(smoke, futures_deliver_values_and_exceptions) {
  weft::run([] {
    EXPECT_EQ(weft::async([] { return std::string("value"); }).get(), std::string("value"));
    bool caught = false;
    try {
      weft::async([] { throw std::runtime_error("failure"); }).get();
    } catch (const std::runtime_error& e) {
      caught = e.what() == std::string("failure");
    }
    EXPECT_TRUE(caught);
  });
}

TEST(smoke, exceptions_survive_a_switch_inside_their_handler) {
  weft::run(
      [] {
        std::vector<weft::future<bool>> all;
        for (int i = 0; i < 30; ++i) {
          all.push_back(weft::async([i] {
            try {
              try {
                throw i;
              } catch (int) {
                for (int k = 0; k < 20; ++k) weft::yield();
                throw;
              }
            } catch (int again) {
              return again == i && std::uncaught_exceptions() == 0;
            }
          }));
        }
        for (auto& one : all) EXPECT_TRUE(one.get());
      },
      {.procs = 2});
}

[[gnu::noinline]] int get_errno() {
  asm volatile("" ::: "memory");
  return errno;
}
[[gnu::noinline]] void set_errno(int value) {
  errno = value;
  asm volatile("" ::: "memory");
}

TEST(smoke, errno_belongs_to_the_goroutine) {
  weft::run(
      [] {
        std::vector<weft::future<bool>> all;
        for (int i = 1; i < 30; ++i) {
          all.push_back(weft::async([i] {
            bool right = true;
            for (int k = 0; k < 50; ++k) {
              set_errno(i + k);
              weft::yield();
              right = right && get_errno() == i + k;
            }
            return right;
          }));
        }
        for (auto& one : all) EXPECT_TRUE(one.get());
      },
      {.procs = 2});
}

TEST(smoke, exit_goroutine_runs_destructors) {
  std::atomic<int> destroyed = 0;
  weft::run([&] {
    weft::go([&] {
      struct counts {
        std::atomic<int>& n;
        ~counts() { ++n; }
      };
      counts outer{destroyed};
      [&] {
        counts inner{destroyed};
        weft::exit_goroutine();
      }();
    });
    while (destroyed != 2) weft::yield();
  });
  EXPECT_EQ(destroyed.load(), 2);
}

[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[1000];
  frame[0] = 1;
  if (depth % 10 == 0) weft::yield();
  const int below = depth > 0 ? recurse(depth - 1) : 0;
  return below + frame[0];
}

TEST(smoke, stacks_are_deep) {
  weft::run(
      [] {
        std::vector<weft::future<int>> all;
        for (int i = 0; i < 10; ++i) all.push_back(weft::async([] { return recurse(150); }));
        for (auto& one : all) EXPECT_EQ(one.get(), 151);
      },
      {.procs = 2});
}

TEST(smoke, plain_threads_wait_for_goroutines) {
  weft::start({.procs = 2});
  int sum = 0;
  std::thread([&] {
    for (int i = 0; i < 100; ++i) sum += weft::async([i] { return i; }).get();
  }).join();
  weft::shutdown();
  EXPECT_EQ(sum, 4950);
}

TEST(smoke, goroutines_know_themselves) {
  EXPECT_EQ(weft::goroutine_id(), std::uint64_t{0});
  weft::run([] {
    EXPECT_TRUE(weft::in_goroutine());
    EXPECT_TRUE(weft::goroutine_id() != 0);
    while (weft::runtime::num_goroutine() != 1) weft::yield();  // those of the tests before this one end first
  });
  EXPECT_FALSE(weft::in_goroutine());
}

TEST(smoke, goroutines_left_by_a_run_are_continued_by_the_next) {
  std::atomic<bool> stop = false;
  std::atomic<bool> ended = false;
  weft::run([&] {
    weft::go([&, token = std::make_unique<int>(1)] {
      while (!stop) weft::yield();
      ended = *token == 1;
    });
  });
  EXPECT_FALSE(ended.load());
  stop = true;
  weft::run([&] {
    while (!ended) weft::yield();
  });
}

}  // namespace
