// start() and shutdown(), and threads that are not goroutines as users of weft.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/await.h"
#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

TEST(start, runs_goroutines_in_the_background) {
  weft::start();
  std::atomic<bool> ran = false;
  weft::go([&] { ran = true; });
  test::await([&] { return ran.load(); });
  weft::shutdown();
}

TEST(start, is_idempotent) {
  weft::start({.procs = 2});
  weft::start();
  weft::start({.procs = 2});
  EXPECT_EQ(weft::async([] { return 1; }).get(), 1);
  weft::shutdown();
}

TEST(start, takes_its_options) {
  weft::start({.procs = 3});
  EXPECT_EQ(weft::async([] { return weft::runtime::max_procs(); }).get(), 3);
  weft::shutdown();
}

TEST(start, may_follow_a_shutdown_with_other_options) {
  for (const int procs : {1, 5, 2}) {
    weft::start({.procs = procs});
    EXPECT_EQ(weft::async([] { return weft::runtime::max_procs(); }).get(), procs);
    weft::shutdown();
  }
}

TEST(start, continues_the_goroutines_that_a_run_left) {
  std::atomic<bool> stop = false;
  std::atomic<long> steps = 0;
  std::atomic<bool> ended = false;
  weft::run([&] {
    weft::go([&] {
      while (!stop) {
        ++steps;
        weft::yield();
      }
      ended = true;
    });
    test::await([&] { return steps > 0; });
  });
  const long then = steps;
  weft::start();
  test::await([&] { return steps > then + 10; });
  stop = true;
  test::await([&] { return ended.load(); });
  weft::shutdown();
}

TEST(shutdown, lets_no_goroutine_be_scheduled_after_it_returns) {
  std::atomic<bool> stop = false;
  std::atomic<int> ended = 0;
  constexpr int count = 10;
  std::atomic<long> steps[count] = {};
  weft::start({.procs = 4});
  for (auto& own : steps) {
    weft::go([&] {
      while (!stop) {
        ++own;
        weft::yield();
      }
      ++ended;
    });
  }
  for (auto& own : steps) test::await([&] { return own > 10; });
  weft::shutdown();
  long then[count];
  for (int i = 0; i < count; ++i) then[i] = steps[i];
  EXPECT_TRUE(test::stays_false(30ms, [&] {
    for (int i = 0; i < count; ++i) {
      if (steps[i] > then[i] + 1) return true;  // one: it was on its way to its next call into weft
    }
    return false;
  }));
  stop = true;
  weft::start();
  test::await([&] { return ended == count; });
  weft::shutdown();
}

TEST(shutdown, of_a_runtime_that_is_not_running_does_nothing) {
  weft::shutdown();
  weft::shutdown();
  EXPECT_EQ(weft::run([] { return 1; }), 1);
  weft::shutdown();
}

TEST(shutdown, may_be_followed_by_run) {
  weft::start();
  EXPECT_EQ(weft::async([] { return 1; }).get(), 1);
  weft::shutdown();
  EXPECT_EQ(weft::run([] { return weft::async([] { return 2; }).get(); }), 2);
}

TEST(a_plain_thread, is_no_goroutine) {
  EXPECT_FALSE(weft::in_goroutine());
  EXPECT_EQ(weft::goroutine_id(), 0u);
  weft::run([] {
    std::thread([] {
      EXPECT_FALSE(weft::in_goroutine());
      EXPECT_EQ(weft::goroutine_id(), 0u);
    }).join();
    EXPECT_TRUE(weft::in_goroutine());
  });
}

TEST(a_plain_thread, may_yield) {
  weft::yield();
  weft::start();
  weft::yield();
  weft::shutdown();
  weft::yield();
}

TEST(a_plain_thread, cannot_exit_as_a_goroutine) { EXPECT_THROW(weft::exit_goroutine(), std::logic_error); }

TEST(a_plain_thread, may_spawn_while_a_run_is_under_way) {
  constexpr int threads = 4;
  constexpr int each = 5000;
  for (const int procs : {1, 2, 8}) {
    std::atomic<int> ran = 0;
    std::vector<std::thread> outsiders;
    weft::run(
        [&] {
          for (int t = 0; t < threads; ++t) {
            outsiders.emplace_back([&] {
              for (int i = 0; i < each; ++i) weft::go([&] { ++ran; });
            });
          }
          test::await([&] { return ran == threads * each; });
        },
        {.procs = procs});
    for (auto& outsider : outsiders) outsider.join();
    EXPECT_EQ(ran, threads * each);
  }
}

TEST(a_plain_thread, that_waits_for_a_goroutine_blocks_until_it_has_the_result) {
  weft::start({.procs = 2});
  std::vector<std::thread> outsiders;
  std::atomic<int> sum = 0;
  for (int t = 0; t < 8; ++t) {
    outsiders.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        sum += weft::async([] {
                 weft::yield();
                 return 1;
               }).get();
      }
    });
  }
  for (auto& outsider : outsiders) outsider.join();
  EXPECT_EQ(sum, 8 * 500);
  weft::shutdown();
}

TEST(a_plain_thread, may_end_after_it_has_used_weft) {
  weft::start({.procs = 2});
  for (int i = 0; i < 300; ++i) {
    std::thread([] { EXPECT_EQ(weft::async([] { return 1; }).get(), 1); }).join();
  }
  weft::shutdown();
}

const test::scenario spawns_without_start("spawns_without_start", [] {
  std::atomic<int> ran = 0;
  for (int i = 0; i < 100; ++i) weft::go([&] { ++ran; });
  test::await([&] { return ran == 100; });
  std::puts("ran");
});

TEST(go_from_a_plain_thread, starts_the_runtime_by_itself) {
  const auto end = spawns_without_start.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.out, "ran\n") << end;
}

const test::scenario spawns_without_start_from_many_threads("spawns_without_start_from_many_threads", [] {
  std::atomic<int> ran = 0;
  std::atomic<bool> begin = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      test::spin_until([&] { return begin.load(); });
      for (int i = 0; i < 100; ++i) weft::go([&] { ++ran; });
    });
  }
  begin = true;
  for (auto& thread : threads) thread.join();
  test::await([&] { return ran == 800; });
  std::puts("ran");
});

TEST(go_from_a_plain_thread, starts_the_runtime_once_when_many_threads_race_to_it) {
  const auto end = spawns_without_start_from_many_threads.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.out, "ran\n") << end;
}

const test::scenario asyncs_without_start("asyncs_without_start", [] {
  std::printf("%d\n", weft::async([] { return weft::async([] { return 9; }).get(); }).get());
});

TEST(async_from_a_plain_thread, starts_the_runtime_by_itself) {
  const auto end = asyncs_without_start.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.out, "9\n") << end;
}

const test::scenario leaves_main_while_goroutines_run("leaves_main_while_goroutines_run", [] {
  static std::atomic<int> running = 0;
  for (int i = 0; i < 50; ++i) {
    weft::go([] {
      ++running;
      for (;;) weft::yield();
    });
  }
  test::await([] { return running == 50; });
});

TEST(a_program, may_return_from_main_while_goroutines_run) {
  const auto end = leaves_main_while_goroutines_run.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.err, "") << end;
}

const test::scenario leaves_main_with_frozen_goroutines("leaves_main_with_frozen_goroutines", [] {
  weft::run(
      [] {
        static std::atomic<int> running = 0;
        static std::atomic<bool> never = false;
        for (int i = 0; i < 50; ++i) {
          weft::go([] {
            ++running;
            while (!never) weft::yield();
          });
          weft::go([] { weft::async([] { test::await([] { return never.load(); }); }).wait(); });
        }
        test::await([] { return running == 50; });
      },
      {.procs = 4});
});

TEST(a_program, may_return_from_main_after_a_run_that_left_goroutines) {
  const auto end = leaves_main_with_frozen_goroutines.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.err, "") << end;
}

}  // namespace
