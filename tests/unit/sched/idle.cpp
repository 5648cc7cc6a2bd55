// A runtime that has nothing to do uses no CPU: its threads sleep, and nobody looks for work.
#include <gtest/gtest.h>
#include <weft/detail/event.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "sched/scheduler.h"
#include "support/await.h"
#include "support/build.h"
#include "support/cpu_time.h"

namespace {

using namespace std::chrono_literals;
using weft::runtime::read_sched_stats;
using weft::sched::sched;

constexpr auto watched = 2000ms;

// Every M is asleep, one of them maybe until the next timer; and so is sysmon.
bool all_threads_sleep() {
  weft::base::lock_guard guard(sched.lock);
  return sched.sysmon_asleep && sched.idle_ms + (sched.poll_until != 0 ? 1 : 0) == sched.machines;
}

void await_idleness() {
  test::await([] {
    std::this_thread::sleep_for(1ms);
    return sched.idle_ps == sched.procs && sched.spinning == 0 && all_threads_sleep();
  });
}

void expect_no_cpu_to_be_used() {
  await_idleness();
  const auto before = read_sched_stats();
  const auto used = test::least_cpu_time(watched, watched / 100, 4);
  const auto after = read_sched_stats();

  EXPECT_LT(used, watched / 100) << used.count() << " us of CPU time";
  EXPECT_EQ(after.spinning_threads, 0);
  EXPECT_EQ(after.spins, before.spins);
  EXPECT_EQ(after.steal_attempts, before.steal_attempts);
  EXPECT_EQ(after.wakeups, before.wakeups);
  EXPECT_EQ(after.picks, before.picks);
  EXPECT_EQ(sched.idle_ps, sched.procs);
}

class an_idle_runtime : public testing::Test {
 protected:
  void SetUp() override { weft::start({.procs = 8}); }
  void TearDown() override { weft::shutdown(); }

  // So that all Ms and Ps have been used.
  void work_for_a_while() {
    std::atomic<int> ended = 0;
    for (int i = 0; i < 1000; ++i) {
      weft::go([&ended] {
        for (int k = 0; k < 20; ++k) weft::yield();
        ++ended;
      });
    }
    test::await([&] { return ended == 1000; });
  }
};

TEST_F(an_idle_runtime, uses_no_cpu_after_work) {
  work_for_a_while();
  expect_no_cpu_to_be_used();
}

TEST_F(an_idle_runtime, uses_no_cpu_while_goroutines_are_parked) {
  constexpr int count = 1000;
  weft::detail::event gate;
  std::atomic<int> parked = 0;
  std::atomic<int> ended = 0;
  for (int i = 0; i < count; ++i) {
    weft::go([&] {
      ++parked;
      gate.wait();
      ++ended;
    });
  }
  test::await([&] { return parked == count; });
  expect_no_cpu_to_be_used();
  gate.set();
  test::await([&] { return ended == count; });
}

TEST_F(an_idle_runtime, uses_no_cpu_while_a_timer_is_far_away) {
  std::atomic<bool> sleeps = false;
  weft::go([&sleeps] {
    sleeps = true;
    weft::sleep_for(1h);
  });
  test::await([&] { return sleeps.load(); });
  work_for_a_while();
  expect_no_cpu_to_be_used();
}

// ---- what going to sleep and waking up looks like -------------------------------------------------------------------

TEST_F(an_idle_runtime, comes_to_rest_after_every_burst) {
  for (std::size_t burst = 0; burst < test::scaled(20, 20, 8); ++burst) {
    work_for_a_while();
    await_idleness();
    EXPECT_EQ(sched.global_size, 0u);
    for (int i = 0; i < sched.procs; ++i) EXPECT_FALSE(weft::sched::processor_at(i)->has_work());
  }
}

TEST_F(an_idle_runtime, wakes_no_crowd_for_one_goroutine) {
  work_for_a_while();
  for (int i = 0; i < 20; ++i) {
    await_idleness();
    const auto before = read_sched_stats();
    std::atomic<bool> ran = false;
    weft::go([&ran] { ran = true; });
    test::await([&] { return ran.load(); });
    await_idleness();
    // The one that found it wakes another to look on, which finds nothing. On a machine that is busy with something else a
    // thread may be off its core for a whole slice: then the goroutine queues up once more, or sysmon misses somebody in the
    // poller, which wakes one more.
    const auto after = read_sched_stats();
    EXPECT_LE(after.wakeups - before.wakeups,
              2 + (after.preempted - before.preempted) + (after.missed_wakes - before.missed_wakes));
  }
}

}  // namespace
