// What C and C++ keep per thread, and a goroutine must take along: errno, exceptions in flight, the end of the stack.
#include <gtest/gtest.h>
#include <unwind.h>
#include <weft/weft.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/await.h"
#include "support/build.h"
#include "support/migrate.h"

namespace {

// Out of line: the compiler takes errno's address to be the same for a whole function, whatever thread it is on.
[[gnu::noinline]] int get_errno() {
  asm volatile("" ::: "memory");
  return errno;
}
[[gnu::noinline]] void set_errno(int value) {
  errno = value;
  asm volatile("" ::: "memory");
}

constexpr int goroutines = test::scaled(50, 20, 20);
constexpr int steps = test::scaled(2000, 200, 200);

// Runs body(i) in many goroutines at once, on one P and on many.
template <class Body>
void in_many_goroutines(Body body) {
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [&] {
          std::vector<weft::future<void>> all;
          for (int i = 0; i < goroutines; ++i) all.push_back(weft::async([&body, i] { body(i); }));
          for (auto& one : all) one.get();
        },
        {.procs = procs});
  }
}

// All in one function, as programs are: the C library tells compilers that errno's address stays the same there.
TEST(errno_of_a_goroutine, is_found_in_optimized_code_that_parks) {
  in_many_goroutines([](int) {
    for (int step = 0; step < steps / 4; ++step) {
      errno = 0;
      [[maybe_unused]] volatile long most = std::strtol("999999999999999999999999", nullptr, 10);
      ASSERT_EQ(errno, ERANGE);
      weft::sleep_for(std::chrono::microseconds(step % 8));
      ASSERT_EQ(errno, ERANGE);
    }
  });
}

TEST(errno_of_a_goroutine, survives_yields) {
  in_many_goroutines([](int i) {
    for (int step = 0; step < steps; ++step) {
      set_errno(1000 * i + step);
      weft::yield();
      ASSERT_EQ(get_errno(), 1000 * i + step);
    }
  });
}

TEST(errno_of_a_goroutine, survives_parking) {
  in_many_goroutines([](int i) {
    for (int step = 0; step < steps / 4; ++step) {
      auto child = weft::async([&] {
        set_errno(-1 - i);
        weft::yield();
      });
      set_errno(1000 * i + step);
      child.get();
      ASSERT_EQ(get_errno(), 1000 * i + step);
    }
  });
}

TEST(errno_of_a_goroutine, is_not_changed_by_spawning) {
  weft::run([] {
    for (int i = 0; i < 10'000; ++i) {
      set_errno(i);
      weft::go([] { set_errno(-1); });
      ASSERT_EQ(get_errno(), i);
    }
    test::await_solitude();
  });
}

TEST(errno_of_a_goroutine, moves_to_another_thread_with_it) {
  weft::run(
      [] {
        for (int i = 0; i < 20; ++i) {
          auto other = weft::async([i] {
            set_errno(4000 + i);
            weft::yield();
            EXPECT_EQ(get_errno(), 4000 + i);
          });
          set_errno(3000 + i);
          test::resume_on_another_thread();
          EXPECT_EQ(get_errno(), 3000 + i);
          other.get();
        }
      },
      {.procs = 2});
}

struct numbered {
  int number;
};

TEST(an_exception, may_be_rethrown_after_yields_inside_its_catch_block) {
  in_many_goroutines([](int i) {
    for (int step = 0; step < steps / 20; ++step) {
      try {
        try {
          throw numbered{i};
        } catch (const numbered& own) {
          for (int k = 0; k < 10; ++k) weft::yield();
          ASSERT_EQ(own.number, i);
          throw;
        }
      } catch (const numbered& again) {
        ASSERT_EQ(again.number, i);
      }
      ASSERT_EQ(std::current_exception(), nullptr);
    }
  });
}

TEST(an_exception, may_be_rethrown_on_another_thread) {
  weft::run(
      [] {
        for (int i = 0; i < 20; ++i) {
          try {
            try {
              throw numbered{i};
            } catch (const numbered&) {
              const long before = test::thread_id();
              test::resume_on_another_thread();
              EXPECT_NE(test::thread_id(), before);
              throw;
            }
          } catch (const numbered& again) {
            EXPECT_EQ(again.number, i);
          }
          EXPECT_EQ(std::current_exception(), nullptr);
        }
      },
      {.procs = 2});
}

// What each level of the nesting threw, innermost last.
std::string unfold(const std::exception& e) {
  std::string text = e.what();
  try {
    std::rethrow_if_nested(e);
  } catch (const std::exception& inner) {
    text += "/" + unfold(inner);
  }
  return text;
}

TEST(an_exception, may_be_nested_in_others_with_yields_at_each_level) {
  in_many_goroutines([](int i) {
    const std::string tag = std::to_string(i);
    for (int step = 0; step < steps / 20; ++step) {
      try {
        try {
          try {
            throw std::runtime_error("c" + tag);
          } catch (...) {
            weft::yield();
            std::throw_with_nested(std::logic_error("b" + tag));
          }
        } catch (...) {
          weft::yield();
          std::throw_with_nested(std::range_error("a" + tag));
        }
      } catch (const std::range_error& outermost) {
        weft::yield();
        ASSERT_EQ(unfold(outermost), "a" + tag + "/b" + tag + "/c" + tag);
      }
    }
  });
}

TEST(an_exception, may_be_thrown_and_caught_while_another_is_being_handled) {
  in_many_goroutines([](int i) {
    for (int step = 0; step < steps / 20; ++step) {
      try {
        throw numbered{i};
      } catch (const numbered& outer) {
        weft::yield();
        try {
          throw numbered{-i};
        } catch (const numbered& inner) {
          weft::yield();
          ASSERT_EQ(inner.number, -i);
        }
        weft::yield();
        ASSERT_EQ(outer.number, i);
        try {
          std::rethrow_exception(std::current_exception());
        } catch (const numbered& current) {
          ASSERT_EQ(current.number, i);
        }
      }
    }
  });
}

TEST(uncaught_exceptions, counts_those_of_the_own_goroutine_only) {
  struct guard {
    int expected;
    ~guard() {
      for (int k = 0; k < 5; ++k) {
        EXPECT_EQ(std::uncaught_exceptions(), expected);
        weft::yield();
      }
      if (expected == 2) return;
      // A second exception, in flight while the first one is.
      try {
        guard inner{2};
        throw numbered{0};
      } catch (const numbered&) {
        EXPECT_EQ(std::uncaught_exceptions(), expected);
      }
    }
  };
  in_many_goroutines([](int i) {
    for (int step = 0; step < steps / 40; ++step) {
      if (i % 2 == 0) {
        ASSERT_EQ(std::uncaught_exceptions(), 0);
        weft::yield();
        continue;
      }
      try {
        guard outer{1};
        throw numbered{i};
      } catch (const numbered& own) {
        ASSERT_EQ(own.number, i);
        ASSERT_EQ(std::uncaught_exceptions(), 0);
      }
    }
  });
}

TEST(uncaught_exceptions, moves_to_another_thread_with_the_goroutine) {
  struct migrates {
    ~migrates() {
      test::resume_on_another_thread();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  weft::run(
      [] {
        for (int i = 0; i < 10; ++i) {
          try {
            migrates on_the_way;
            throw numbered{i};
          } catch (const numbered& own) {
            EXPECT_EQ(own.number, i);
          }
          EXPECT_EQ(std::uncaught_exceptions(), 0);
        }
      },
      {.procs = 2});
}

TEST(a_new_goroutine, starts_without_the_exceptions_of_its_creator) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          const auto look = [] {
            EXPECT_EQ(std::current_exception(), nullptr);
            EXPECT_EQ(std::uncaught_exceptions(), 0);
          };
          struct spawns {
            decltype(look)& f;
            ~spawns() { weft::async(f).get(); }
          };
          try {
            spawns while_unwinding{look};
            throw numbered{1};
          } catch (const numbered&) {
            weft::async(look).get();
            EXPECT_NE(std::current_exception(), nullptr);
          }
        },
        {.procs = procs});
  }
}

TEST(an_exception_ptr, may_be_rethrown_in_many_goroutines_at_once) {
  const auto shared = std::make_exception_ptr(numbered{77});
  in_many_goroutines([&](int) {
    for (int step = 0; step < steps / 20; ++step) {
      try {
        std::rethrow_exception(shared);
      } catch (const numbered& e) {
        weft::yield();
        ASSERT_EQ(e.number, 77);
      }
    }
  });
}

struct unwound {
  int frames = 0;
  _Unwind_Reason_Code end = _URC_NO_REASON;
};

[[gnu::noinline]] unwound unwind_from_here() {
  unwound result;
  result.end = _Unwind_Backtrace(
      [](_Unwind_Context*, void* p) {
        return ++static_cast<unwound*>(p)->frames > 500 ? _URC_NORMAL_STOP : _URC_NO_REASON;
      },
      &result);
  return result;
}

[[gnu::noinline]] unwound unwind_from_depth(int depth) {
  if (depth == 0) return unwind_from_here();
  unwound result = unwind_from_depth(depth - 1);
  asm volatile("" ::: "memory");  // no tail call: there shall be one frame a level
  return result;
}

TEST(unwinding, ends_at_the_first_frame_of_the_goroutine) {
  const auto looks_right = [](const char* where) {
    const unwound shallow = unwind_from_depth(0);
    EXPECT_EQ(shallow.end, _URC_END_OF_STACK) << where;
    EXPECT_LT(shallow.frames, 40) << where;
    const unwound deep = unwind_from_depth(100);
    EXPECT_EQ(deep.end, _URC_END_OF_STACK) << where;
    EXPECT_EQ(deep.frames, shallow.frames + 100) << where;
  };
  weft::run(
      [&] {
        looks_right("in the main goroutine");
        weft::async([&] { looks_right("in a new goroutine"); }).get();
        weft::async([&] {
          weft::yield();
          looks_right("after a yield");
          test::resume_on_another_thread();
          looks_right("on another thread");
        }).get();
        std::atomic<int> done = 0;
        for (int i = 0; i < 10; ++i) {
          weft::go([&] {
            looks_right("on a stack that another one used before");
            ++done;
          });
        }
        test::await([&] { return done == 10; });
      },
      {.procs = 2});
}

}  // namespace
