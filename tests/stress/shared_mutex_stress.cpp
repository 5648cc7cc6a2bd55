// Readers that spread out and are gathered again, over and over: goroutines that pause and move while they read, plain
// threads among them, writers that come seldom and often by turns, the number of Ps changing, and locks that live only
// for a moment. For how long and how: support/stress.h.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "support/stress.h"

namespace {

using clock = std::chrono::steady_clock;
using test::progress;
using test::random_source;

struct guarded {
  weft::shared_mutex m;
  std::uint64_t a = 0, b = 0;  // behind m
  std::atomic<std::uint64_t> writes{0};
};

void pause_somehow(random_source& random) {
  switch (random.below(4)) {
    case 0:
      weft::sleep_for(random.microseconds(50));
      break;
    case 1:
      weft::blocking([] { std::this_thread::yield(); });
      break;
    default:
      if (weft::in_goroutine()) weft::yield();
  }
}

void write(guarded& g, random_source& random) {
  ++g.a;
  if (random.one_in(16)) pause_somehow(random);
  ++g.b;
  ++g.writes;
}

void read(const guarded& g, random_source& random) {
  const std::uint64_t seen = g.a;
  EXPECT_EQ(g.b, seen);
  if (!random.one_in(64)) return;
  pause_somehow(random);
  EXPECT_EQ(g.a, seen);
  EXPECT_EQ(g.b, seen);
}

void take_turns(guarded& g, std::uint64_t seed, int turns) {
  random_source random(seed);
  std::uint64_t one_writes_in = 10;
  for (int i = 0; i < turns; ++i) {
    if (i % 500 == 0) one_writes_in = std::uint64_t{4} << random.below(9);
    const bool tries = random.one_in(8);
    if (random.one_in(one_writes_in)) {
      std::unique_lock guard(g.m, std::defer_lock);
      if (tries ? guard.try_lock() : (guard.lock(), true)) write(g, random);
    } else {
      std::shared_lock guard(g.m, std::defer_lock);
      if (tries ? guard.try_lock() : (guard.lock(), true)) read(g, random);
    }
    ++progress;
  }
}

// All of them use the lock once more when nobody holds it any more, and the last one destroys it.
void one_life(std::uint64_t seed, int turns) {
  constexpr int goroutines = 6, threads = 2;
  struct object : guarded {
    int users = goroutines + threads;  // behind m
  };
  auto* o = new object;
  const auto body = [o, seed, turns](int id) {
    take_turns(*o, seed + static_cast<std::uint64_t>(id), turns);
    o->m.lock();
    EXPECT_EQ(o->a, o->writes);
    const bool last = --o->users == 0;
    o->m.unlock();
    if (last) delete o;
  };
  weft::wait_group all;
  for (int i = 0; i < goroutines; ++i) all.go([&body, i] { body(i); });
  std::vector<std::thread> plain;
  for (int i = 0; i < threads; ++i) plain.emplace_back([&body, i] { body(goroutines + i); });
  all.wait();
  weft::blocking([&] {
    for (std::thread& t : plain) t.join();
  });
}

TEST(shared_mutex_stress, readers_and_writers_keep_each_other_out_and_all_come_in) {
  std::fprintf(stderr, "seed %" PRIu64 "\n", test::stress_seed());
  test::watchdog watchdog([] { std::fprintf(stderr, "hung after %" PRIu64 " turns\n", progress.load()); });
  random_source random(test::stress_seed());
  const auto share = test::stress_duration() / 3;
  for (const int procs : {2, 8, 1}) {
    weft::run(
        [&] {
          const auto end = clock::now() + share;
          while (clock::now() < end) {
            if (random.one_in(4)) weft::runtime::set_max_procs(1 + static_cast<int>(random.below(8)));
            one_life(random.next(), random.one_in(2) ? 200 : 5'000);
          }
        },
        {.procs = procs});
  }
}

}  // namespace
