// More threads than options::max_threads allows: a fatal error that says so, and not a program that stands still.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

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

}  // namespace
