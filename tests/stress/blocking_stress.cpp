// Ps that come and go: blocking calls of all lengths beside goroutines that compute, wait, sleep, are locked to their threads
// or preempted in place, while the world is stopped and the number of Ps changes. Each does a fixed number of steps; if nobody
// does one for a minute, the watchdog says so and aborts. WEFT_STRESS_SECONDS, WEFT_STRESS_SEED: support/stress.h.
#include <gtest/gtest.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "support/await.h"
#include "support/build.h"
#include "support/stress.h"

namespace {

using clock = std::chrono::steady_clock;
using test::progress;
using test::random_source;

constexpr int actors = test::scaled(120, 60, 40);
constexpr int steps = test::scaled(300, 100, 60);

void spin_for(std::chrono::microseconds d) {
  for (const auto end = clock::now() + d; clock::now() < end;) {
  }
}

void step(random_source& random, weft::chan<int> meeting) {
  switch (random.below(12)) {
    case 0:
      weft::blocking([] {});
      break;
    case 1:
      spin_for(random.microseconds(200));
      break;
    case 2:
      weft::sleep_for(random.microseconds(300));
      break;
    case 3: {
      int none = 0;
      if (!meeting.try_send(0)) (void)meeting.try_recv(none);
      break;
    }
    case 4:
      EXPECT_EQ(weft::async([] { return weft::blocking([] { return 7; }); }).get(), 7);
      break;
    case 5:
      weft::lock_os_thread();
      weft::blocking([&] { ::usleep(static_cast<useconds_t>(random.below(100))); });
      weft::yield();
      weft::unlock_os_thread();
      break;
    case 6:
      ::usleep(static_cast<useconds_t>(random.below(100)));  // nobody was told
      break;
    case 7:
      weft::yield();
      break;
    default:
      weft::blocking([&] { ::usleep(static_cast<useconds_t>(random.below(300))); });
      break;
  }
  ++progress;
}

void round(std::uint64_t seed, int procs) {
  weft::run(
      [&] {
        std::atomic<int> done{0};
        std::atomic<bool> over{false};
        weft::chan<int> meeting(4);
        weft::wait_group all;
        weft::wait_group changes;
        for (int i = 0; i < actors; ++i) {
          all.go([&, i] {
            random_source random(seed + static_cast<std::uint64_t>(i));
            for (int k = 0; k < steps; ++k) {
              step(random, meeting);
              ++done;
            }
          });
        }
        changes.go([&] {
          random_source random(seed);
          while (!over) {
            weft::sleep_for(std::chrono::milliseconds(1 + random.below(5)));
            weft::runtime::set_max_procs(random.one_in(2) ? procs : 1 + static_cast<int>(random.below(8)));
          }
        });
        all.wait();
        over = true;
        changes.wait();
        EXPECT_EQ(done, actors * steps);
        test::await_solitude();
      },
      {.procs = procs});
}

TEST(blocking_stress, everybody_gets_on) {
  constexpr int all_procs[] = {1, 2, 3, 8};
  const std::uint64_t seed = test::stress_seed();
  std::printf("WEFT_STRESS_SEED=%" PRIu64 "\n", seed);
  std::fflush(stdout);
  const test::watchdog watching([] {
    std::fprintf(stderr, "blocking_stress: nobody did a step for a minute\n");
    weft::runtime::dump_goroutines(std::cerr);
  });
  random_source random(seed);
  const auto end = clock::now() + test::stress_duration();
  for (std::size_t rounds = 0; !HasFailure() && (rounds < std::size(all_procs) || clock::now() < end); ++rounds) {
    SCOPED_TRACE(rounds);
    round(random.next(), all_procs[rounds % std::size(all_procs)]);
  }
}

}  // namespace
