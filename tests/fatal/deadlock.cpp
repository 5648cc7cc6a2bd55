// All goroutines are asleep and nothing can wake one; and SIGQUIT; and what is left behind by run().
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "support/await.h"
#include "support/build.h"
#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

bool has(const test::outcome& end, const std::string& text) { return end.err.find(text) != std::string::npos; }

const char* const asleep = "fatal error: all goroutines are asleep - deadlock!\n\n";

// The thread sanitizer has a thread of its own, which cannot be told from one of the program's. And it holds a signal back
// until the thread that got it calls a function that it knows, which one that sleeps on a futex of ours never does.
#if defined(__SANITIZE_THREAD__)
constexpr bool sees_deadlocks = false;
constexpr bool gets_signals = false;
#else
constexpr bool sees_deadlocks = true;
constexpr bool gets_signals = true;
#endif

void expect_deadlock(const test::outcome& end, const std::string& reason) {
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_TRUE(end.err.starts_with(asleep)) << end;
  EXPECT_TRUE(has(end, "goroutine 1 [" + reason + "]:\n")) << end;
  EXPECT_EQ(end.out.find("after"), std::string::npos) << end;
}

const test::scenario receive_from_nobody("receive_from_nobody", [] {
  weft::run([] {
    std::printf("before");  // no newline: nothing flushes it
    weft::chan<int> c;
    c.recv();
  });
  std::puts("after");
});

TEST(a_deadlock, ends_the_program_with_a_dump_and_code_2) {
  if (!sees_deadlocks) GTEST_SKIP();
  const auto end = receive_from_nobody.run();
  expect_deadlock(end, "chan receive");
  EXPECT_EQ(end.out, "before") << end;
}

const test::scenario traced_and_receive_from_nobody("traced_and_receive_from_nobody", [] {
  weft::run([] {
    weft::trace::start("/dev/null");
    weft::chan<int>().recv();
  });
});

TEST(a_deadlock, is_found_while_a_trace_is_on) {
  if (!sees_deadlocks) GTEST_SKIP();
  expect_deadlock(traced_and_receive_from_nobody.run(), "chan receive");
}

const test::scenario mutexes_in_a_ring("mutexes_in_a_ring", [] {
  weft::run(
      [] {
        weft::mutex a, b;
        a.lock();
        weft::chan<int> locked;
        weft::go([&] {
          b.lock();
          locked.send(1);
          a.lock();
        });
        locked.recv();
        b.lock();
      },
      {.procs = 4});
});

TEST(a_deadlock, is_found_whatever_they_wait_for) {
  if (!sees_deadlocks) GTEST_SKIP();
  const auto end = mutexes_in_a_ring.run();
  expect_deadlock(end, "sync.Mutex.Lock");
}

const test::scenario after_sleeping("after_sleeping", [] {
  weft::run([] {
    weft::sleep_for(50ms);
    weft::blocking([] { std::this_thread::sleep_for(50ms); });
    weft::timer stopped(1h);
    stopped.stop();
    stopped.channel().recv();
  });
});

TEST(a_deadlock, is_found_after_timers_and_blocking_calls_have_ended) {
  if (!sees_deadlocks) GTEST_SKIP();
  expect_deadlock(after_sleeping.run(), "chan receive");
}

TEST(a_deadlock, is_found_while_the_schedule_is_traced) {
  if (!sees_deadlocks) GTEST_SKIP();
  const auto end = receive_from_nobody.run({{"WEFTDEBUG", "schedtrace=50"}});
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_TRUE(has(end, asleep)) << end;
}

const test::scenario second_run("second_run", [] {
  for (int i = 0; i < 3; ++i) {
    weft::run([] {
      weft::chan<int> c;
      weft::go([=] { c.recv(); });
      weft::yield();
    });
  }
  weft::run([] { weft::chan<int>().recv(); });
});

TEST(a_deadlock, is_found_in_a_later_run_too) {
  if (!sees_deadlocks) GTEST_SKIP();
  const auto end = second_run.run();
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_TRUE(end.err.starts_with(asleep)) << end;
}

const test::scenario main_exits("main_exits", [] {
  weft::run([] {
    weft::go([] { weft::sleep_for(10ms); });
    weft::exit_goroutine();
  });
});

TEST(a_deadlock, is_when_main_has_exited_and_no_goroutine_is_left) {
  if (!sees_deadlocks) GTEST_SKIP();
  const auto end = main_exits.run();
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_TRUE(end.err.starts_with("fatal error: no goroutines (main called exit_goroutine) - deadlock!\n")) << end;
}

const test::scenario thread_helps("thread_helps", [] {
  weft::chan<int> c;
  std::thread helper([=] {
    std::this_thread::sleep_for(1500ms);
    c.send(1);
  });
  weft::run([&] { c.recv(); });
  helper.join();
  std::puts("after");
});

const test::scenario main_thread_helps("main_thread_helps", [] {
  weft::chan<int> c, done;
  weft::start();
  weft::go([=] {
    c.recv();
    done.close();
  });
  std::this_thread::sleep_for(1200ms);
  c.send(1);
  done.recv();
  std::puts("after");
});

const test::scenario timer_helps("timer_helps", [] {
  weft::run([] {
    weft::chan<int> c;
    weft::after_func(1200ms, [=] { c.send(1); });
    c.recv();
    weft::blocking([] { ::usleep(1'200'000); });
  });
  std::puts("after");
});

TEST(a_deadlock, is_none_while_a_thread_from_outside_exists_or_a_timer_is_pending) {
  for (const test::scenario* s : {&thread_helps, &main_thread_helps, &timer_helps}) {
    const auto end = s->run();
    EXPECT_EQ(end.exit_code, 0) << end;
    EXPECT_EQ(end.out, "after\n") << end;
    EXPECT_EQ(end.err, "") << end;
  }
}

const test::scenario thread_ends("thread_ends", [] {
  std::thread([] { std::this_thread::sleep_for(300ms); }).detach();
  weft::run([] { weft::chan<int>().recv(); });
});

TEST(a_deadlock, is_found_once_the_last_thread_from_outside_has_ended) {
  if (!sees_deadlocks) GTEST_SKIP();
  expect_deadlock(thread_ends.run(), "chan receive");
}

const test::scenario many_short_runs("many_short_runs", [] {
  // 5000 times, or as often as a busy machine does it in ten seconds.
  const auto end = std::chrono::steady_clock::now() + 10s;
  for (int i = 0; i < 5000 && (i < 100 || std::chrono::steady_clock::now() < end); ++i) {
    weft::run(
        [] {
          weft::chan<int> c;
          weft::go([=] { c.send(1); });
          c.recv();
        },
        {.procs = 1 + i % 4});
  }
  std::puts("after");
});

TEST(a_deadlock, is_never_seen_in_a_program_that_starts_and_ends_all_the_time) {
  const auto end = many_short_runs.run();
  EXPECT_EQ(end.out, "after\n") << end;
  EXPECT_EQ(end.exit_code, 0) << end;
}

// ---- SIGQUIT ----

const char* const quits_variable = "QUIT_TEST_TIMES";
int times_to_quit() {
  const char* text = std::getenv(quits_variable);
  return text == nullptr ? 1 : std::atoi(text);
}

const test::scenario is_told_to_quit("is_told_to_quit", [] {
  weft::run(
      [] {
        std::printf("before");
        weft::chan<int> c;
        const auto parks = weft::runtime::read_sched_stats().parks;
        weft::go({.name = "waiter"}, [=] { c.recv(); });
        weft::go([] {
          while (true) weft::yield();
        });
        test::await([=] { return weft::runtime::read_sched_stats().parks > parks; });
        for (int i = times_to_quit(); i > 0; --i) ::kill(::getpid(), SIGQUIT);
        weft::sleep_for(1h);
      },
      {.procs = 2});
});

void expect_quit(const test::outcome& end) {
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_TRUE(end.err.starts_with("SIGQUIT: quit\n\n")) << end;
  EXPECT_TRUE(has(end, "goroutine 1 [")) << end;  // asleep, or still on its way there
  EXPECT_TRUE(has(end, " [chan receive] \"waiter\":\n")) << end;
  EXPECT_EQ(end.out, "before") << end;
}

TEST(sigquit, dumps_all_goroutines_and_exits_with_2) {
  if (!gets_signals) GTEST_SKIP();
  expect_quit(is_told_to_quit.run());
}

TEST(sigquit, that_comes_several_times_at_once_dumps_once) {
  if (!gets_signals) GTEST_SKIP();
  expect_quit(is_told_to_quit.run({{quits_variable, "50"}}));
}

const test::scenario quits_while_busy("quits_while_busy", [] {
  weft::run(
      [] {
        static std::atomic<int> begun;
        for (int i = 0; i < 2; ++i) {
          weft::go([] {
            ++begun;
            static std::atomic<unsigned long> n;
            while (true) ++n;
          });
        }
        test::await([] { return begun == 2; });
        weft::blocking([] { std::this_thread::sleep_for(50ms); });
        ::kill(::getpid(), SIGQUIT);
        weft::sleep_for(1h);
      },
      {.procs = 4});
});

TEST(sigquit, works_although_goroutines_compute_and_never_call_into_weft) {
  if (!gets_signals) GTEST_SKIP();
  const auto end = quits_while_busy.run();
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_TRUE(has(end, " [running]:\n")) << end;
}

const test::scenario has_its_own_handler("has_its_own_handler", [] {
  ::signal(SIGQUIT, [](int) { ::_exit(9); });
  weft::run([] {
    ::raise(SIGQUIT);
    weft::sleep_for(1h);
  });
});

TEST(sigquit, is_left_to_a_program_that_has_a_handler_for_it) {
  const auto end = has_its_own_handler.run();
  EXPECT_EQ(end.exit_code, 9) << end;
  EXPECT_EQ(end.err, "") << end;
}

const test::scenario ignores_it("ignores_it", [] {
  ::signal(SIGQUIT, SIG_IGN);
  weft::run([] { ::raise(SIGQUIT); });
});

TEST(sigquit, is_left_to_a_program_that_ignores_it) {
  const auto end = ignores_it.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.err, "") << end;
}

// As scripts start what runs in the background.
TEST(sigquit, shows_the_goroutines_of_a_program_that_was_started_with_it_ignored) {
  if (!gets_signals) GTEST_SKIP();
  void (*const before)(int) = ::signal(SIGQUIT, SIG_IGN);
  const auto end = quits_while_busy.run();
  ::signal(SIGQUIT, before);
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_TRUE(end.err.starts_with("SIGQUIT: quit\n\n")) << end;
}

// ---- leaks=1 ----

const test::scenario leaves_some_behind("leaves_some_behind", [] {
  weft::run([] {
    weft::chan<int> c;
    for (int i = 0; i < 3; ++i) weft::go([=] { c.recv(); });
    const auto waiting = [] {
      std::ostringstream out;
      weft::runtime::dump_goroutines(out);
      const std::string dump = out.str();
      int n = 0;
      for (auto at = dump.find(" [chan receive]:\n"); at != dump.npos; at = dump.find(" [chan receive]:\n", at + 1)) ++n;
      return n;
    };
    while (waiting() < 3) weft::sleep_for(1ms);
  });
});

TEST(leaks, are_listed_at_the_end_of_run_if_asked_for) {
  const auto end = leaves_some_behind.run({{"WEFTDEBUG", "leaks=1"}});
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_TRUE(end.err.starts_with("weft: run() leaves 3 goroutines behind that still wait:\n\n")) << end;
  EXPECT_TRUE(has(end, " [chan receive]:\n")) << end;
  EXPECT_EQ(leaves_some_behind.run().err, "");
}

// Its last call would take the place of the function on the stack.
const test::scenario main_waits_at_its_end("main_waits_at_its_end", [] {
  static weft::wait_group never;
  never.add(1);
  weft::run([] { never.wait(); });
});
TEST(deadlock, shows_where_the_main_goroutine_waits_at_its_very_end) {
  if (test::under_tsan) GTEST_SKIP();
  const auto end = main_waits_at_its_end.run();
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_NE(end.err.find("deadlock.cpp:"), std::string::npos) << end;
}

}  // namespace
