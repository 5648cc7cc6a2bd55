// Timers, tickers and functions that are started, stopped, reset, waited for, selected on and dropped at random, by
// goroutines and plain threads at once, on 1, 2 and 8 Ps, for as long as the environment says:
//
//   WEFT_STRESS_SECONDS=N   in all (3 if not set)
//   WEFT_SOAK=1             120 seconds
//   WEFT_STRESS_SEED=N      repeats the decisions (not the interleavings) of the run that printed this seed
//
// What must hold all the time: no value is older than the setting that it is received under; of each setting of a timer
// that several share, exactly one thing becomes: it is received, or a stop or reset says that it was active. At the end
// no timer is left in a heap. If nothing moves for a minute, the watchdog says so and aborts.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sched/scheduler.h"
#include "support/anywhere.h"
#include "support/build.h"
#include "support/stress.h"

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using test::progress;
using test::random_source;

// Mostly so short that the timer expires while something else is done to it.
std::chrono::nanoseconds delay(random_source& random) {
  if (random.one_in(16)) return std::chrono::hours(1);
  return std::chrono::nanoseconds(random.below(random.one_in(8) ? 2'000'000 : 20'000));
}

// A timer of its own: every answer can be foretold.
void alone(random_source& random) {
  weft::timer t(delay(random));
  bool active = true;
  auto not_before = steady::time_point::min();
  for (int i = 0; i < 50; ++i, ++progress) {
    switch (random.below(5)) {
      case 0:
        EXPECT_EQ(t.stop(), active);
        active = false;
        break;
      case 1: {
        const auto d = delay(random);
        not_before = steady::now() + d;
        EXPECT_EQ(t.reset(d), active);
        active = true;
        break;
      }
      case 2: {
        weft::time_point out;
        if (t.channel().try_recv(out) != weft::recv_status::ok) break;
        EXPECT_TRUE(active);
        EXPECT_GE(out, not_before);
        active = false;
        break;
      }
      case 3:
        weft::select(weft::on_recv(t.channel(),
                                   [&](std::optional<weft::time_point> v) {
                                     EXPECT_TRUE(active);
                                     EXPECT_GE(*v, not_before);
                                     active = false;
                                   }),
                     weft::on_timeout(std::chrono::nanoseconds(random.below(30'000))));
        break;
      case 4:
        if (active && t.reset(1us)) {
          EXPECT_TRUE(t.channel().recv());
          active = false;
        }
        break;
    }
  }
}

// A timer that several share. Each setting is accounted for exactly once.
struct shared_timer {
  weft::timer t{std::chrono::hours(1)};
  weft::chan<int> over;
  std::atomic<std::int64_t> set{1}, ended{0};  // settings, and ends of settings: received, stopped or replaced
};

void receive(shared_timer& s) {
  while (weft::select(weft::on_recv(s.t.channel(), [&] { ++s.ended; }), weft::on_recv(s.over)) == 0) ++progress;
}

void change(shared_timer& s, random_source& random) {
  for (int i = 0; i < 50; ++i, ++progress) {
    if (random.one_in(4)) {
      s.ended += s.t.stop();
    } else {
      ++s.set;
      s.ended += s.t.reset(delay(random));
    }
    if (random.one_in(4)) weft::yield();
  }
}

void together(random_source& random) {
  shared_timer s;
  test::crew receivers;
  for (int i = 0; i < 3; ++i) receivers.either(i, [&] { receive(s); });
  {
    test::crew changers;
    for (int i = 0; i < 3; ++i) changers.either(i, [&, own = random_source(random.next())]() mutable { change(s, own); });
  }
  s.ended += s.t.stop();
  s.over.close();
  receivers.wait();
  EXPECT_EQ(s.ended, s.set) << "settings of a timer that were received twice, or by nobody";
}

// Functions: each setting is called, or stopped, or replaced.
void functions(random_source& random) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  int expected = 1;
  weft::timer t = weft::after_func(delay(random), [calls] { ++*calls; });
  for (int i = 0; i < 30; ++i, ++progress) {
    if (random.one_in(3)) {
      expected -= t.stop();
    } else {
      expected += 1 - t.reset(delay(random));
    }
    if (random.one_in(3)) weft::yield();
  }
  expected -= t.stop();
  test::await([&] { return *calls == expected; });
}

void ticks(random_source& random) {
  weft::ticker t(std::chrono::nanoseconds(1 + random.below(50'000)));
  auto last = steady::time_point::min();
  for (int i = 0; i < 20; ++i, ++progress) {
    if (random.one_in(4)) t.reset(std::chrono::nanoseconds(1 + random.below(50'000)));
    const auto tick = *t.channel().recv();
    EXPECT_GT(tick, last);
    last = tick;
  }
}

void forgotten(random_source& random) {
  weft::chan<int> ready(1);
  for (int i = 0; i < 50; ++i, ++progress) {
    const auto c = weft::after(delay(random));
    ready.send(i);
    weft::select(weft::on_recv(ready), weft::on_recv(c));
    while (ready.size() != 0) ready.recv();
    if (random.one_in(8)) weft::after_func(std::chrono::nanoseconds(random.below(10'000)), [] { ++progress; });
  }
}

std::size_t timers_in_heaps() {
  std::size_t n = 0;
  for (int i = 0; i < weft::sched::sched.procs.load(); ++i) n += weft::sched::processor_at(i)->timers.size();
  return n;
}

TEST(timers, hold_their_promises_under_stress) {
  const std::uint64_t seed = test::stress_seed();
  std::printf("WEFT_STRESS_SEED=%" PRIu64 "\n", seed);
  const test::watchdog dog([] { std::fprintf(stderr, "timer_stress: nothing has moved for a minute\n"); });
  random_source random(seed);
  constexpr void (*scenarios[])(random_source&) = {alone, together, functions, ticks, forgotten};
  const int all_procs[] = {1, 2, 8};
  for (const int procs : all_procs) {
    weft::run(
        [&] {
          const auto end = steady::now() + std::chrono::milliseconds(test::stress_duration()) / 3;
          do {
            {
              test::crew crew;
              for (int i = 0; i < 12; ++i) {
                crew.either(i % 3 == 2, [&, i, own = random_source(random.next())]() mutable { scenarios[i % 5](own); });
              }
            }
            // Functions that nobody remembers may still have to be called.
            test::await([] { return weft::runtime::num_goroutine() == 1 && timers_in_heaps() == 0; });
          } while (steady::now() < end && !testing::Test::HasFailure());
        },
        {.procs = procs});
  }
}

}  // namespace
