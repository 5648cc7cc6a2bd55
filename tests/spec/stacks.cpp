// A goroutine may use all of its stack, and finds it as it left it.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/await.h"
#include "support/build.h"

namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t default_size = 256 * kib;

// What is left at the deepest point: room for the frames that are there already when a goroutine begins, and for the
// deepest one itself.
constexpr std::size_t nearly_all = test::under_sanitizer ? 24 * kib : 8 * kib;

// Recurses until `depth` bytes of stack are in use, calls at_the_bottom there, and checks on the way back that every
// frame still holds what was written to it.
[[gnu::noinline]] bool dive(const char* top, std::size_t depth, const std::function<void()>& at_the_bottom) {
  volatile unsigned char frame[200];
  const auto used = static_cast<std::size_t>(top - static_cast<const char*>(__builtin_frame_address(0)));
  const auto mark = static_cast<unsigned char>(used / 16);
  for (auto& byte : frame) byte = mark;
  bool intact = true;
  if (used >= depth) {
    at_the_bottom();
  } else {
    intact = dive(top, depth, at_the_bottom);
  }
  for (const auto& byte : frame) intact = intact && byte == mark;
  return intact;
}

void use_stack(
    std::size_t depth, const std::function<void()>& at_the_bottom = [] {}) {
  EXPECT_TRUE(dive(static_cast<const char*>(__builtin_frame_address(0)), depth, at_the_bottom));
}

TEST(a_stack, of_default_size_can_be_used_up) {
  weft::run([] {
    use_stack(default_size - nearly_all);
    weft::async([] { use_stack(default_size - nearly_all); }).get();
  });
}

TEST(a_stack, has_the_size_that_the_options_of_run_say) {
  for (const std::size_t size : {64 * kib, 100 * kib, 1024 * kib, 4 * 1024 * kib}) {
    weft::run(
        [size] {
          use_stack(size - nearly_all);
          weft::async([size] { use_stack(size - nearly_all); }).get();
        },
        {.stack_size = size});
  }
}

TEST(a_stack, has_the_size_that_the_options_of_go_say) {
  weft::run([] {
    std::atomic<int> done = 0;
    int spawned = 0;
    for (int round = 0; round < 3; ++round) {
      for (const std::size_t size : {64 * kib, 100 * kib, 512 * kib, 1024 * kib, 4 * 1024 * kib}) {
        weft::go({.name = "sized", .stack_size = size}, [&done, size] {
          use_stack(size - nearly_all);
          ++done;
        });
        weft::go([&] {
          use_stack(default_size - nearly_all);
          ++done;
        });
        spawned += 2;
      }
    }
    test::await([&] { return done == spawned; });
  });
}

TEST(a_stack, can_be_used_up_by_goroutines_that_outlive_a_change_of_the_default) {
  std::atomic<int> done = 0;
  std::atomic<int> begun = 0;
  std::atomic<bool> go_on = false;
  constexpr std::size_t large = 2048 * kib;
  weft::run(
      [&] {
        for (int i = 0; i < 10; ++i) {
          weft::go([&] {
            ++begun;
            test::await([&] { return go_on.load(); });
            use_stack(large - nearly_all);
            ++done;
          });
        }
        test::await([&] { return begun == 10; });
      },
      {.stack_size = large});
  go_on = true;
  weft::run([&] { test::await([&] { return done == 10; }); }, {.stack_size = 64 * kib});
}

TEST(a_stack, can_be_used_up_again_by_the_next_goroutine_that_gets_it) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          for (int i = 0; i < 500; ++i) weft::async([] { use_stack(default_size - nearly_all); }).get();
        },
        {.procs = procs});
  }
}

TEST(a_stack, keeps_its_content_across_yields_at_any_depth) {
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [] {
          std::vector<weft::future<void>> all;
          for (std::size_t i = 0; i < 60; ++i) {
            all.push_back(weft::async([i] {
              for (std::size_t depth = kib; depth < 200 * kib; depth += (i + 1) * 3 * kib) {
                use_stack(depth, [] {
                  for (int k = 0; k < 5; ++k) weft::yield();
                });
              }
            }));
          }
          for (auto& one : all) one.get();
        },
        {.procs = procs});
  }
}

TEST(a_stack, is_aligned_as_the_platform_demands) {
  const auto look = [] {
    struct alignas(16) vector {
      float lanes[4];
    };
    struct alignas(64) line {
      char bytes[64];
    };
    volatile vector v{};
    volatile line l{};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&v) % 16, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&l) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) % 16, 0u);
  };
  weft::run([&] {
    look();
    for (int i = 0; i < 5; ++i) weft::async(look).get();
    std::atomic<bool> done = false;
    weft::go([&] {
      look();
      done = true;
    });
    test::await([&] { return done.load(); });
  });
}

// What libc itself needs for these calls: formatting a long double takes it about 9 KiB.
constexpr std::size_t for_libc = test::under_sanitizer ? 64 * kib : 20 * kib;

void call_libc() {
  char text[400];
  EXPECT_EQ(std::snprintf(text, sizeof text, "%.3f %d %s", 3.14159, 42, "text"), 13);
  EXPECT_STREQ(text, "3.142 42 text");
  EXPECT_EQ(std::snprintf(text, sizeof text, "%.0f", 1e308), 309);
  EXPECT_GT(std::snprintf(text, sizeof text, "%La %Lg", 1.5L, 1e4000L), 0);
  EXPECT_DOUBLE_EQ(std::strtod("2.2250738585072014e-308", nullptr), 2.2250738585072014e-308);
  EXPECT_NEAR(std::sin(1e22), -0.852200849, 1e-6);
  char* const block = static_cast<char*>(std::malloc(100'000));
  std::memset(block, 1, 100'000);
  std::free(block);
}

TEST(a_stack, has_room_for_calls_into_libc_near_its_end) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          use_stack(default_size - for_libc, call_libc);
          for (int i = 0; i < 10; ++i) weft::async([] { use_stack(default_size - for_libc, call_libc); }).get();
        },
        {.procs = procs});
  }
}

TEST(a_stack, has_room_for_calls_into_weft_near_its_end) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          for (int i = 0; i < 10; ++i) {
            weft::async([] {
              use_stack(default_size - 2 * nearly_all, [] {
                std::atomic<int> ran = 0;
                for (int k = 0; k < 600; ++k) weft::go([&] { ++ran; });  // more than a ring holds
                test::await([&] { return ran == 600; });
                EXPECT_EQ(weft::async([] { return 5; }).get(), 5);
              });
            }).get();
          }
        },
        {.procs = procs});
  }
}

TEST(a_stack, has_room_to_throw_and_unwind_near_its_end) {
  constexpr std::size_t for_the_unwinder = test::under_sanitizer ? 64 * kib : 20 * kib;
  weft::run([] {
    EXPECT_THROW(
        weft::async([] { use_stack(default_size - for_the_unwinder, [] { throw std::string("deep"); }); }).get(),
        std::string);
    std::atomic<int> ended = 0;
    weft::go([&] {
      struct at_the_end {
        std::atomic<int>& n;
        ~at_the_end() { ++n; }
      } last{ended};
      use_stack(default_size - for_the_unwinder, [] { weft::exit_goroutine(); });
    });
    test::await([&] { return ended == 1; });
  });
}

}  // namespace
