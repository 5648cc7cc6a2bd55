// exit_goroutine(): a goroutine ends where it stands, and its frames are unwound.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/await.h"
#include "support/live.h"
#include "support/migrate.h"

namespace {

// Runs f in a goroutine of its own, and returns once that goroutine is gone.
template <class F>
void run_in_a_goroutine(F f, int procs = 2) {
  weft::run(
      [&] {
        weft::go(std::ref(f));
        test::await_solitude();
      },
      {.procs = procs});
}

TEST(exit_goroutine, ends_the_goroutine_at_once) {
  bool before = false;
  bool after = false;
  run_in_a_goroutine([&] {
    before = true;
    if (weft::in_goroutine()) weft::exit_goroutine();
    after = true;
  });
  EXPECT_TRUE(before);
  EXPECT_FALSE(after);
}

[[gnu::noinline]] void leave_from(int depth, std::atomic<int>& alive, std::atomic<int>& highest) {
  test::live frame(alive);
  highest = alive.load();
  if (depth > 0) {
    leave_from(depth - 1, alive, highest);
  } else if (weft::in_goroutine()) {
    weft::exit_goroutine();
  }
}

TEST(exit_goroutine, runs_the_destructors_of_every_frame) {
  std::atomic<int> alive = 0;
  std::atomic<int> highest = 0;
  run_in_a_goroutine([&] { leave_from(49, alive, highest); });
  EXPECT_EQ(highest, 50);
  EXPECT_EQ(alive, 0);
}

TEST(exit_goroutine, runs_destructors_in_reverse_order) {
  struct note {
    std::string& text;
    char letter;
    ~note() { text += letter; }
  };
  std::string order;
  run_in_a_goroutine([&] {
    note a{order, 'a'};
    [&] {
      note b{order, 'b'};
      note c{order, 'c'};
      weft::exit_goroutine();
    }();
  });
  EXPECT_EQ(order, "cba");
}

TEST(exit_goroutine, destroys_the_captures_and_arguments) {
  std::atomic<int> alive = 0;
  weft::run([&] {
    for (int i = 0; i < 100; ++i) {
      weft::go([captured = test::live(alive)](const test::live&) { weft::exit_goroutine(); }, test::live(alive));
    }
    test::await_solitude();
  });
  EXPECT_EQ(alive, 0);
}

TEST(exit_goroutine, lets_destructors_on_its_way_park) {
  struct parks {
    std::atomic<int>& parked;
    ~parks() {
      const auto id = weft::goroutine_id();
      weft::yield();
      weft::async([] { weft::yield(); }).wait();
      EXPECT_EQ(weft::goroutine_id(), id);
      ++parked;
    }
  };
  for (const int procs : {1, 2}) {
    std::atomic<int> parked = 0;
    run_in_a_goroutine(
        [&] {
          parks outer{parked};
          parks inner{parked};
          weft::exit_goroutine();
        },
        procs);
    EXPECT_EQ(parked, 2);
  }
}

TEST(exit_goroutine, is_not_a_std_exception) {
  bool caught = false;
  run_in_a_goroutine([&] {
    try {
      weft::exit_goroutine();
    } catch (const std::exception&) {
      caught = true;
    }
    caught = true;
  });
  EXPECT_FALSE(caught);
}

TEST(exit_goroutine, passes_a_catch_all_that_rethrows) {
  int caught = 0;
  bool went_on = false;
  run_in_a_goroutine([&] {
    try {
      try {
        weft::exit_goroutine();
      } catch (...) {
        ++caught;
        weft::yield();
        throw;
      }
    } catch (...) {
      ++caught;
      throw;
    }
    went_on = true;
  });
  EXPECT_EQ(caught, 2);
  EXPECT_FALSE(went_on);
}

TEST(exit_goroutine, may_be_called_inside_a_catch_block) {
  std::atomic<int> alive = 0;
  run_in_a_goroutine(
      [&] {
        test::live outer(alive);
        try {
          throw std::runtime_error("forgotten");
        } catch (const std::runtime_error&) {
          test::live inner(alive);
          weft::exit_goroutine();
        }
      },
      1);
  EXPECT_EQ(alive, 0);
  // The next goroutines, on the same stack and thread, know nothing of it.
  run_in_a_goroutine(
      [] {
        EXPECT_EQ(std::current_exception(), nullptr);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
      },
      1);
}

TEST(exit_goroutine, works_on_another_thread_than_the_goroutine_began_on) {
  std::atomic<int> alive = 0;
  std::atomic<bool> ended = false;
  weft::run(
      [&] {
        weft::async([&] {
          test::live frame(alive);
          test::resume_on_another_thread();
          ended = true;
          weft::exit_goroutine();
        }).wait();
      },
      {.procs = 2});
  EXPECT_TRUE(ended);
  EXPECT_EQ(alive, 0);
}

TEST(exit_goroutine, in_an_async_function_breaks_its_promise) {
  weft::run([] {
    auto broken = weft::async([]() -> int { weft::exit_goroutine(); });
    try {
      broken.get();
      ADD_FAILURE() << "there was no value to get";
    } catch (const std::future_error& e) {
      EXPECT_EQ(e.code(), std::future_errc::broken_promise);
    }
    auto broken_void = weft::async([] { weft::exit_goroutine(); });
    broken_void.wait();
    EXPECT_THROW(broken_void.get(), std::future_error);
  });
}

TEST(exit_goroutine, does_not_disturb_the_goroutines_around_it) {
  for (const int procs : {1, 2, 8}) {
    constexpr int count = 5000;
    std::atomic<int> alive = 0;
    std::atomic<int> stayed = 0;
    weft::run(
        [&] {
          for (int i = 0; i < count; ++i) {
            weft::go([&, i] {
              test::live frame(alive);
              if (i % 3 == 0) weft::yield();
              if (i % 2 == 0) weft::exit_goroutine();
              weft::yield();
              ++stayed;
            });
          }
          test::await_solitude();
        },
        {.procs = procs});
    EXPECT_EQ(stayed, count / 2);
    EXPECT_EQ(alive, 0);
  }
}

}  // namespace
