// Traces are begun and ended while goroutines talk, spawn, compute, sleep and are in blocking calls, plain threads wake
// them, and the number of Ps changes. Each trace is read back: on every track one thing follows the other.
//
//   WEFT_STRESS_SECONDS=N   in all (6 if not set)
//   WEFT_SOAK=1             240 seconds
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "support/folder.h"
#include "support/stress.h"
#include "support/traced.h"

namespace {

using namespace std::chrono_literals;

struct work {
  std::atomic<bool> stop = false;
  weft::wait_group wg;

  void talk(std::uint64_t) {
    weft::chan<int> a, b;
    wg.go([=] {
      while (const auto n = a.recv()) b.send(*n);
      b.close();
    });
    for (int i = 0; !stop; ++i) {
      a.send(i);
      b.recv();
      ++test::progress;
    }
    a.close();
    b.recv();
  }
  void spawn(std::uint64_t) {
    while (!stop) {
      weft::async([] { weft::yield(); }).get();
      ++test::progress;
    }
  }
  void compute(std::uint64_t) {
    while (!stop) {
    }
  }
  void sleep(std::uint64_t seed) {
    for (test::random_source random(seed); !stop; ++test::progress) weft::sleep_for(random.microseconds(500));
  }
  void block(std::uint64_t seed) {
    for (test::random_source random(seed); !stop; ++test::progress) {
      weft::blocking([&] { std::this_thread::sleep_for(random.microseconds(200)); });
    }
  }
};

// Begun and ended by a goroutine or by a plain thread.
void trace_for_a_moment(test::random_source& random, const std::string& path) {
  weft::trace::start(path);
  weft::sleep_for(random.microseconds(20'000));
  if (random.one_in(2)) weft::runtime::set_max_procs(1 + static_cast<int>(random.below(6)));
  weft::sleep_for(random.microseconds(5'000));
  weft::trace::stop();
}

// The end of a recording, which may have been cut off anywhere.
void record_for_a_moment(test::random_source& random, const std::string& path) {
  weft::trace::record(1 << 20);
  for (std::uint64_t i = random.below(3);; --i) {
    weft::sleep_for(random.microseconds(20'000));
    if (random.one_in(4)) weft::runtime::set_max_procs(1 + static_cast<int>(random.below(6)));
    weft::trace::save(path);
    if (i == 0) break;
  }
  weft::trace::stop();
}

void round(std::uint64_t seed) {
  test::random_source random(seed);
  const test::folder tmp;
  const std::string file = tmp / "trace";
  work w;
  weft::run(
      [&] {
        void (work::*const kinds[])(std::uint64_t) = {&work::talk, &work::spawn, &work::compute, &work::sleep,
                                                      &work::block};
        for (int i = 0; i < 12; ++i) {
          const auto kind = kinds[random.below(std::size(kinds))];
          w.wg.go([&w, kind, s = random.next()] { (w.*kind)(s); });
        }
        weft::chan<int> c;
        std::thread outside([&w, c] {
          for (int i = 0; !w.stop; ++i) c.send(i);
          c.close();
        });
        w.wg.go([c] {
          while (c.recv()) ++test::progress;
        });
        for (int i = 0; i < 3; ++i) {
          const auto trace = random.one_in(2) ? trace_for_a_moment : record_for_a_moment;
          if (random.one_in(2)) {
            trace(random, file);
          } else {
            weft::blocking([&] { std::thread([&] { trace(random, file); }).join(); });
          }
          const tool::trace_file t = tool::trace_file::read(file);
          if (!test::has_losses(t)) test::expect_consistent(t);
        }
        w.stop = true;
        weft::blocking([&] { outside.join(); });
        w.wg.wait();
      },
      {.procs = 1 + static_cast<int>(random.below(4))});
}

TEST(stress, traces_of_a_busy_program_are_consistent) {
  test::random_source random(test::stress_seed());
  std::printf("seed %llu\n", static_cast<unsigned long long>(test::stress_seed()));
  const test::watchdog dog([] { std::fprintf(stderr, "nothing has moved for a minute\n"); });
  const auto end = std::chrono::steady_clock::now() + test::stress_duration(6, 240);
  while (std::chrono::steady_clock::now() < end && !testing::Test::HasFatalFailure()) round(random.next());
}

}  // namespace
