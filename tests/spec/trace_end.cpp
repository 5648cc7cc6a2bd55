// The execution trace of a program that does not end it: that ends by itself, dies, or is killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/await.h"
#include "support/build.h"
#include "support/folder.h"
#include "support/fork.h"
#include "support/subprocess.h"
#include "support/traced.h"

namespace {

using namespace std::chrono_literals;
using tool::trace_file;

std::string file_from_environment() { return std::getenv("TRACE_FILE"); }

bool is_in_file(const std::string& file, const std::string& name) {
  try {
    return test::states_of(trace_file::read(file), name).contains("running");
  } catch (const std::runtime_error&) {
    return false;  // nothing is there yet
  }
}

// To its end. Far from enough happens for a full buffer.
void run_goroutine(const std::string& name) {
  weft::chan<int> done;
  weft::go({.name = name}, [=] { done.send(1); });
  done.recv();
}
void run_last_goroutine() { run_goroutine("the last one"); }

void trace_until(void (*end)()) {
  weft::run(
      [end] {
        weft::trace::start(file_from_environment());
        run_last_goroutine();
        end();
      },
      {.procs = 2});
}

// The trace is as whole as if it had been stopped.
void expect_last_goroutine(const test::scenario& s, int signal, int exit_code) {
  const test::folder tmp;
  const std::string file = tmp / "trace";
  const test::outcome end = s.run({{"TRACE_FILE", file}});
  EXPECT_FALSE(end.timed_out) << end;
  EXPECT_EQ(end.signal, signal) << end;
  EXPECT_EQ(end.exit_code, exit_code) << end;
  trace_file t;
  ASSERT_NO_THROW(t = trace_file::read(file)) << end;
  EXPECT_FALSE(t.is_cut);
  test::expect_consistent(t);
  EXPECT_TRUE(test::states_of(t, "\"the last one\"").contains("running")) << end;
}

const test::scenario returns("returns", [] { trace_until([] {}); });
const test::scenario exits("exits", [] { trace_until([] { std::exit(0); }); });

TEST(a_trace, of_a_program_that_returns_from_main_is_whole) { expect_last_goroutine(returns, 0, 0); }
TEST(a_trace, of_a_program_that_exits_in_a_goroutine_is_whole) { expect_last_goroutine(exits, 0, 0); }

// Whose goroutines fill one chunk after the other while it exits, and after the trace has been written.
const test::scenario exits_amid_work("exits_amid_work", [] {
  static struct lasting {
    ~lasting() { std::this_thread::sleep_for(20ms); }
  } destroyed_after_it;
  trace_until([] {
    for (int i = 0; i < 4; ++i) {
      weft::go([] {
        for (;;) weft::yield();
      });
    }
    for (int i = 0; i < 1000; ++i) weft::yield();
    run_last_goroutine();
    std::exit(0);
  });
});

TEST(a_trace, of_a_program_that_exits_while_goroutines_run_is_not_cut) {
  const test::folder tmp;
  const std::string file = tmp / "trace";
  const test::outcome end = exits_amid_work.run({{"TRACE_FILE", file}});
  EXPECT_EQ(end.exit_code, 0) << end;
  trace_file t;
  ASSERT_NO_THROW(t = trace_file::read(file)) << end;
  EXPECT_FALSE(t.is_cut);
  EXPECT_TRUE(test::states_of(t, "\"the last one\"").contains("running"));
}

struct ends_the_trace {
  ~ends_the_trace() { weft::trace::stop(); }
} const* late = nullptr;

// Before the trace is begun for the first time: it is destroyed after what the trace does at exit.
const test::scenario stops_while_it_exits("stops_while_it_exits", [] {
  static ends_the_trace at_last;
  late = &at_last;
  trace_until([] {});
});

TEST(a_trace, may_be_stopped_by_a_destructor_at_exit) { expect_last_goroutine(stops_while_it_exits, 0, 0); }

const test::scenario quits("quits", [] {
  trace_until([] {
    ::raise(SIGQUIT);
    weft::chan<int>().recv();
  });
});
const test::scenario deadlocks("deadlocks", [] { trace_until([] { weft::chan<int>(0).recv(); }); });
const test::scenario throws("throws", [] {
  trace_until([] {
    weft::go([] { throw std::runtime_error("the boat sank"); });
    weft::chan<int>().recv();
  });
});
const test::scenario unlocks("unlocks", [] {
  trace_until([] {
    weft::mutex m;
    m.unlock();
  });
});

volatile bool deeper = true;
[[gnu::noinline]] int overflow_here(int n) {
  volatile char room[512] = {};
  return deeper ? overflow_here(n + 1) + room[n % 512] : 0;
}
const test::scenario overflows("overflows", [] {
  trace_until([] {
    weft::go([] { overflow_here(0); });
    weft::chan<int>().recv();
  });
});

TEST(a_trace, of_a_program_that_is_quit_is_whole) { expect_last_goroutine(quits, 0, 2); }
TEST(a_trace, of_a_deadlock_is_whole) {
  if (test::under_tsan) GTEST_SKIP() << "TSan has a thread of its own, which might wake somebody";
  expect_last_goroutine(deadlocks, 0, 2);
}
TEST(a_trace, of_an_uncaught_exception_is_whole) { expect_last_goroutine(throws, SIGABRT, -1); }
TEST(a_trace, of_a_fatal_error_is_whole) { expect_last_goroutine(unlocks, SIGABRT, -1); }
TEST(a_trace, of_a_stack_overflow_is_whole) {
  if (test::under_asan) GTEST_SKIP() << "ASan has a report of its own";
  expect_last_goroutine(overflows, SIGABRT, -1);
}

TEST(a_trace, is_in_the_file_soon_also_when_little_happens) {
  const test::folder tmp;
  const std::string file = tmp / "trace";
  weft::run([&] {
    weft::trace::start(file);
    for (const std::string name : {"the first one", "the second one"}) {
      run_goroutine(name);
      weft::blocking([&] { test::await([&] { return is_in_file(file, "\"" + name + "\""); }); });
    }
    weft::trace::stop();
  });
  test::expect_consistent(trace_file::read(file));
}

// Its copy of the trace is not its own.
const test::scenario forks("forks", [] {
  trace_until([] {
    const pid_t child = ::fork();
    if (child == 0) {
      test::is_forked_child = true;
      std::exit(7);
    }
    const int status = test::status_of(child);
    std::exit(WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 1);
  });
});

TEST(a_trace, is_left_alone_by_a_forked_child_that_exits) {
  if (test::under_tsan) GTEST_SKIP() << "TSan looks for threads at exit that the child does not have";
  expect_last_goroutine(forks, 0, 0);
}

// The pipe is full: the writer never comes to an end.
const test::scenario exits_without_reader("exits_without_reader", [] {
  const std::string fifo = file_from_environment();
  [[maybe_unused]] static const int never_read = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  trace_until([] {
    weft::wait_group wg;
    for (int i = 0; i < 20'000; ++i) wg.go([] {});
    wg.wait();
  });
});

TEST(a_trace, that_cannot_be_written_does_not_keep_a_program_from_its_exit) {
  const test::folder tmp;
  const std::string fifo = tmp / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const test::outcome end = exits_without_reader.run({{"TRACE_FILE", fifo}});
  EXPECT_FALSE(end.timed_out) << end;
  EXPECT_EQ(end.exit_code, 0) << end;
}

}  // namespace
