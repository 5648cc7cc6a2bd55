// Who ends the program tells where everybody is: also those who just compute.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/await.h"
#include "support/build.h"
#include "support/subprocess.h"

namespace {

std::atomic<int> arrived = 0;

[[gnu::noinline]] void spin_here() {
  ++arrived;
  static std::atomic<unsigned long> n;
  for (;;) ++n;
}

[[gnu::noinline]] void sleep_here() {
  ++arrived;
  for (;;) ::sleep(100);
}

// One that computes, one that sleeps where weft does not know of it, one in a declared call, one that waits; then
// `end`.
template <void (*End)()>
void everybody_is_busy_until() {
  weft::run(
      [] {
        weft::go([] { spin_here(); });
        weft::go([] { sleep_here(); });
        weft::go([] { weft::blocking([] { sleep_here(); }); });
        const auto parks = weft::runtime::read_sched_stats().parks;
        weft::go([] { weft::chan<int>().recv(); });
        test::await([=] { return weft::runtime::read_sched_stats().parks > parks; });
        test::await([] { return arrived == 3; });
        End();
        weft::chan<int>().recv();
      },
      {.procs = 4});
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Each is there, and if functions have names here (libdw) then by that of what it does.
void expect_everybody(const test::outcome& end) {
  EXPECT_FALSE(end.timed_out) << end;
  EXPECT_GE(count(end.err, "\ngoroutine "), 5) << end;
  EXPECT_GE(count(end.err, " [syscall]:\n"), 1) << end;
  EXPECT_GE(count(end.err, " [chan receive"), 1) << end;
  if (end.err.find("fatal/dump.cpp:") == std::string::npos) return;
  EXPECT_GE(count(end.err, "spin_here"), 1) << end;
  EXPECT_GE(count(end.err, "sleep_here"), 2) << end;
}

void unlock_unlocked() {
  weft::mutex m;
  m.unlock();
}
const test::scenario unlocks("unlocks", everybody_is_busy_until<unlock_unlocked>);

TEST(a_fatal_error, lists_all_goroutines_and_who_made_it_first) {
  const auto end = unlocks.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_TRUE(end.err.starts_with("fatal error: sync: unlock of unlocked mutex\n\ngoroutine 1 [running]:\n")) << end;
  expect_everybody(end);
}

TEST(a_fatal_error, lists_all_goroutines_with_preemption_off) {
  const auto end = unlocks.run({{"WEFTDEBUG", "asyncpreemptoff=1"}});
  EXPECT_EQ(end.signal, SIGABRT) << end;
  expect_everybody(end);
}

void throw_in_goroutine() {
  weft::go([] { throw std::runtime_error("the boat sank"); });
}
const test::scenario throws("throws", everybody_is_busy_until<throw_in_goroutine>);

TEST(an_uncaught_exception, lists_all_goroutines) {
  const auto end = throws.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_NE(end.err.find("the boat sank"), std::string::npos) << end;
  expect_everybody(end);
}

volatile bool deeper = true;
[[gnu::noinline]] int overflow_here(int n) {
  volatile char room[512] = {};
  return deeper ? overflow_here(n + 1) + room[n % 512] : 0;
}
void overflow_in_goroutine() {
  weft::go([] { overflow_here(0); });
}
const test::scenario overflows("overflows", everybody_is_busy_until<overflow_in_goroutine>);

TEST(a_stack_overflow, lists_all_goroutines) {
  if (test::under_asan) GTEST_SKIP() << "ASan has a report of its own";
  const auto end = overflows.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_NE(end.err.find("stack overflow"), std::string::npos) << end;
  expect_everybody(end);
}

void quit() { ::kill(::getpid(), SIGQUIT); }
const test::scenario quits("quits", everybody_is_busy_until<quit>);

TEST(sigquit, shows_where_goroutines_compute_and_sleep) {
  if (test::under_tsan) GTEST_SKIP() << "TSan holds a signal back until the thread that got it calls a function that it knows";
  for (const char* debug : {"", "asyncpreemptoff=1"}) {
    const auto end = quits.run({{"WEFTDEBUG", debug}});
    EXPECT_EQ(end.exit_code, 2) << end;
    expect_everybody(end);
  }
}

// main() sleeps in a call that the signal cuts short, and then returns.
const test::scenario quits_in_own_main("quits_in_own_main", [] {
  weft::start();
  weft::go([] { weft::chan<int>().recv(); });
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    quit();
  }).detach();
  ::pause();
});

TEST(sigquit, is_answered_before_a_main_that_it_woke_returns) {
  if (test::under_tsan) GTEST_SKIP() << "TSan holds a signal back until the thread that got it calls a function that it knows";
  const auto end = quits_in_own_main.run();
  EXPECT_EQ(end.exit_code, 2) << end;
  EXPECT_NE(end.err.find("[chan receive]"), std::string::npos) << end;
}

// The thread that made it waits for the list with the lock held that the others want: the list needs none of them.
std::mutex everybodys;
void die_with_a_lock() {
  std::lock_guard guard(everybodys);
  for (int i = 0; i < 2; ++i) {
    weft::go([] { std::lock_guard other(everybodys); });
  }
  weft::yield();
  unlock_unlocked();
}
const test::scenario dies_with_a_lock("dies_with_a_lock", everybody_is_busy_until<die_with_a_lock>);

TEST(a_fatal_error, lists_all_goroutines_whatever_lock_the_dying_one_holds) {
  const auto end = dies_with_a_lock.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  expect_everybody(end);
}

const test::scenario by_a_plain_thread("by_a_plain_thread", [] {
  weft::run(
      [] {
        weft::go([] { spin_here(); });
        weft::go([] { sleep_here(); });
        weft::go([] { weft::blocking([] { sleep_here(); }); });
        test::await([] { return arrived == 3; });
        std::thread(unlock_unlocked).detach();
        weft::chan<int>().recv();
      },
      {.procs = 2});
});

TEST(a_fatal_error, of_a_plain_thread_lists_all_goroutines) {
  const auto end = by_a_plain_thread.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_EQ(count(end.err, "\ngoroutine "), 4) << end;
}

}  // namespace
