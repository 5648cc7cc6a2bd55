// More threads than options::max_threads allows: a fatal error that says so, and not a program that stands still.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include <unistd.h>

#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

void expect_fatal(const test::scenario& s) {
  const auto end = s.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_NE(end.err.find("fatal error: the program needs more than 20 threads"), std::string::npos) << end;
}

void block_in(int calls) {
  weft::run(
      [=] {
        for (int i = 0; i < calls; ++i) weft::go([] { weft::blocking([] { ::sleep(100); }); });
        for (;;) weft::sleep_for(10ms);  // until the last thread is taken, however slowly this machine starts them
      },
      {.procs = 2, .max_threads = 20});
}

const test::scenario many_calls("many_calls", [] { block_in(100); });
const test::scenario a_sleeper_left("a_sleeper_left", [] { block_in(20); });
TEST(too_many_threads, more_blocking_calls_than_threads_end_the_program) {
  expect_fatal(many_calls);
  expect_fatal(a_sleeper_left);
}

const test::scenario short_calls("short_calls", [] {
  weft::run(
      [] {
        weft::wait_group all;
        for (int i = 0; i < 100; ++i) all.go([] { weft::blocking([] { ::usleep(500); }); });
        all.wait();
      },
      {.procs = 2, .max_threads = 8});
});
TEST(too_many_threads, calls_that_end_soon_wait_for_one_another) {
  const auto end = short_calls.run();
  EXPECT_EQ(end.exit_code, 0) << end;
}

// Nobody has declared these calls. The P of each goes to another thread, as long as there are threads.
const test::scenario undeclared_calls("undeclared_calls", [] {
  weft::run(
      [] {
        for (int i = 0; i < 50; ++i) weft::go([] { ::sleep(100); });
        for (;;) weft::sleep_for(10ms);
      },
      {.procs = 2, .max_threads = 20});
});
TEST(too_many_threads, calls_that_nobody_declared_count_too) { expect_fatal(undeclared_calls); }

// Each that is stopped in the middle of its work takes a thread along. Those that have begun take turns, and the main goroutine gets
// none until some have ended.
const test::scenario computing("computing", [] {
  weft::run(
      [] {
        static std::atomic<bool> over = false;
        std::thread clock([] {
          std::this_thread::sleep_for(4s);
          over = true;
        });
        weft::wait_group all;
        for (int i = 0; i < 40; ++i) {
          all.go([] {
            while (!over.load(std::memory_order_relaxed)) {
            }
          });
        }
        all.wait();
        clock.join();
      },
      {.procs = 1, .max_threads = 8});
});
TEST(too_many_threads, goroutines_that_compute_are_warned_of) {
  const auto end = computing.run({{"WEFTDEBUG", "slice=1"}});
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_NE(end.err.find("no more than 8 threads are allowed (options::max_threads)"), std::string::npos) << end;
}

// No more threads than Ps, and none of them ever blocks.
void compute_a_little(int procs) {
  weft::run(
      [] {
        weft::wait_group all;
        for (int round = 0; round < 20; ++round) {
          for (int i = 0; i < 50; ++i) {
            all.go([] {
              volatile int k = 0;
              while (k < 2000) k = k + 1;
            });
          }
          all.wait();
          weft::sleep_for(200us);
        }
      },
      {.procs = procs, .max_threads = procs});
}
const test::scenario on_two_threads("on_two_threads", [] { compute_a_little(2); });
const test::scenario on_four_threads("on_four_threads", [] { compute_a_little(4); });
TEST(too_many_threads, are_not_needed_by_who_can_do_with_those_that_are_just_starting) {
  for (int i = 0; i < 20; ++i) {
    for (const test::scenario* s : {&on_two_threads, &on_four_threads}) {
      const auto end = s->run({{"WEFTDEBUG", "asyncpreemptoff=1"}});  // who is stopped in place needs a thread
      ASSERT_EQ(end.exit_code, 0) << end;
    }
  }
}

}  // namespace
