// What runs on a goroutine's stack can do all that it could do on a thread's: throw, unwind, print, compute; and
// whoever walks that stack finds its end.
#include <gtest/gtest.h>
#include <unwind.h>
#include <weft/weft.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "arch/context.h"
#include "support/await.h"

namespace {

// ---- unwinding ------------------------------------------------------------------------------------------------------

struct frames {
  std::vector<std::uintptr_t> function;  // where the function of each frame begins, the innermost first
  _Unwind_Reason_Code end = _URC_NO_REASON;
  bool endless = false;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& all = *static_cast<frames*>(argument);
  if (_Unwind_GetIP(context) == 0) return _URC_NO_REASON;  // the end itself
  all.function.push_back(_Unwind_GetRegionStart(context));
  all.endless = all.function.size() > 10'000;
  return all.endless ? _URC_END_OF_STACK : _URC_NO_REASON;
}

[[gnu::noinline]] frames walk() {
  frames all;
  all.end = _Unwind_Backtrace(&add_frame, &all);
  return all;
}

[[gnu::noinline]] frames walk_from_depth(int depth) {
  if (depth == 0) return walk();
  frames all = walk_from_depth(depth - 1);
  asm volatile("" ::: "memory");  // not a tail call
  return all;
}

void expect_end_at_the_first_frame(const frames& all) {
  EXPECT_FALSE(all.endless);
  EXPECT_EQ(static_cast<int>(all.end), static_cast<int>(_URC_END_OF_STACK));
  ASSERT_FALSE(all.function.empty());
  const auto first = all.function.back();
  EXPECT_TRUE(first == reinterpret_cast<std::uintptr_t>(&weft::arch::weft_goroutine_start) ||
              first == reinterpret_cast<std::uintptr_t>(&weft::arch::weft_goroutine_borrow));
}

TEST(a_walk_over_a_goroutines_stack, ends_at_its_first_frame) {
  weft::run([] {
    expect_end_at_the_first_frame(walk());
    expect_end_at_the_first_frame(weft::async([] { return walk(); }).get());
  });
}

TEST(a_walk_over_a_goroutines_stack, sees_every_frame) {
  weft::run([] {
    const frames near = walk_from_depth(1);
    const frames deep = walk_from_depth(101);
    expect_end_at_the_first_frame(deep);
    EXPECT_EQ(deep.function.size(), near.function.size() + 100);
  });
}

TEST(a_walk_over_a_goroutines_stack, ends_after_it_was_resumed) {
  weft::run(
      [] {
        for (int i = 0; i < 20; ++i) {
          auto walked = weft::async([] {
            for (int k = 0; k < 3; ++k) weft::yield();
            return walk_from_depth(3);
          });
          expect_end_at_the_first_frame(walked.get());
        }
      },
      {.procs = 2});
}

TEST(a_walk_over_a_goroutines_stack, ends_on_a_stack_that_was_another_goroutines_before) {
  weft::run(
      [] {
        const auto before = weft::runtime::read_sched_stats().stacks_inherited;
        std::vector<weft::future<frames>> walks;
        for (int i = 0; i < 100; ++i) walks.push_back(weft::async([] { return walk(); }));
        for (auto& w : walks) expect_end_at_the_first_frame(w.get());
        EXPECT_GT(weft::runtime::read_sched_stats().stacks_inherited, before);
      },
      {.procs = 1});
}

TEST(a_walk_over_a_goroutines_stack, ends_while_an_exception_is_being_handled) {
  weft::run([] {
    try {
      throw std::runtime_error("handled");
    } catch (const std::runtime_error&) {
      weft::yield();
      expect_end_at_the_first_frame(walk());
    }
  });
}

// ---- exceptions -----------------------------------------------------------------------------------------------------

[[gnu::noinline]] int throw_from_depth(int depth, int value) {
  if (depth == 0) throw value;
  return throw_from_depth(depth - 1, value) + 1;
}

TEST(an_exception, is_caught_in_the_goroutine_that_throws_it) {
  weft::run([] {
    for (int i = 0; i < 100; ++i) {
      try {
        throw_from_depth(i % 10, i);
        FAIL() << "nothing was thrown";
      } catch (const int found) {
        EXPECT_EQ(found, i);
      }
    }
  });
}

TEST(an_exception, is_each_goroutines_own_while_they_take_turns_in_their_handlers) {
  for (const int procs : {1, 2}) {
    std::atomic<int> right = 0;
    weft::run(
        [&] {
          std::vector<weft::future<void>> all;
          for (int i = 0; i < 50; ++i) {
            all.push_back(weft::async([&right, i] {
              try {
                throw_from_depth(i % 7, i);
              } catch (...) {
                for (int k = 0; k < 5; ++k) weft::yield();
                try {
                  throw;
                } catch (const int found) {
                  weft::yield();
                  right += found == i ? 1 : 0;
                }
              }
            }));
          }
          for (auto& f : all) f.get();
        },
        {.procs = procs});
    EXPECT_EQ(right, 50);
  }
}

TEST(an_exception, runs_the_destructors_of_frames_that_were_parked_in) {
  struct counted {
    explicit counted(int& n) : n(n) {}
    ~counted() {
      weft::yield();  // parking in a destructor, while the exception is on its way
      ++n;
    }
    int& n;
  };
  int destroyed = 0;
  weft::run([&] {
    weft::go([] {});
    try {
      counted a(destroyed);
      weft::yield();
      counted b(destroyed);
      weft::yield();
      throw_from_depth(3, 1);
    } catch (const int) {
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      EXPECT_EQ(destroyed, 2);
    }
  });
  EXPECT_EQ(destroyed, 2);
}

// ---- registers and alignment ----------------------------------------------------------------------------------------

template <class T>
T opaque(T value) {
  volatile T hidden = value;
  return hidden;
}

TEST(values_in_registers, survive_a_yield) {
  for (const int procs : {1, 2}) {
    std::atomic<int> right = 0;
    weft::run(
        [&] {
          std::vector<weft::future<void>> all;
          for (int i = 0; i < 20; ++i) {
            all.push_back(weft::async([&right, i] {
              const long a = opaque<long>(i), b = opaque<long>(i + 1), c = opaque<long>(i + 2), d = opaque<long>(i + 3),
                         e = opaque<long>(i + 4), f = opaque<long>(i + 5);
              const double u = opaque<double>(i), v = opaque(i + 0.5), w = opaque(i + 0.25), x = opaque(i + 0.125);
              long sum = 0;
              double real = 0;
              for (int round = 0; round < 100; ++round) {
                weft::yield();
                sum += a + b + c + d + e + f;
                real += u + v + w + x;
              }
              right += sum == 100 * (6 * i + 15) && real == 100 * (4 * i + 0.875) ? 1 : 0;
            }));
          }
          for (auto& f : all) f.get();
        },
        {.procs = procs});
    EXPECT_EQ(right, 20);
  }
}

std::string printed(int i) {
  char text[100];
  std::snprintf(text, sizeof text, "%d %.2f %.3Lf %s", i, opaque(2.25), opaque(1.125L), "x");
  return text;
}

TEST(a_goroutines_stack, is_aligned_for_printf_from_its_first_use_to_its_last) {
  weft::run(
      [] {
        // Many at once, so that stacks of every colour are used; and many after each other on one stack.
        std::vector<weft::future<std::string>> all;
        for (int i = 0; i < 64; ++i) {
          all.push_back(weft::async([i] {
            weft::yield();
            return printed(i);
          }));
        }
        for (int i = 0; i < 64; ++i) {
          EXPECT_STREQ(all[static_cast<std::size_t>(i)].get().c_str(), (std::to_string(i) + " 2.25 1.125 x").c_str());
          EXPECT_STREQ(weft::async([i] { return printed(i); }).get().c_str(),
                       (std::to_string(i) + " 2.25 1.125 x").c_str());
        }
      },
      {.procs = 1});
}

}  // namespace
