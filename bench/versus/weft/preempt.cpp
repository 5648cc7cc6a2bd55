// Goroutines that do not give way: computing on and on, or blocking their thread.
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <vector>

#include <time.h>

#include "../common/harness.h"
#include "sched.h"

namespace bench {
namespace {

using namespace std::chrono_literals;

outcome hog(const arguments& a) {
  std::atomic<bool> stop{false};
  std::uint64_t turns = 0;
  wait_group wg;
  wg.add(1);
  weft::go([&] {
    for (; !stop.load(std::memory_order_relaxed); ++turns) {
    }
    wg.done();
  });
  std::vector<std::chrono::nanoseconds> late(a.n);
  const stopwatch w;
  for (auto& sample : late) {
    const auto start = clock::now();
    weft::sleep_for(1ms);
    sample = clock::now() - start - 1ms;
  }
  outcome out = w.stop(a.n);
  stop = true;
  wg.wait();
  out.ok = turns > 0;
  add_percentiles(out, late);
  return out;
}
const registered hog_workload{{"hog", 500, 10, hog}};

void nap() {
  timespec ms{0, 1'000'000};
  weft::blocking([&] { ::nanosleep(&ms, nullptr); });
}

outcome blocking_naps(const arguments& a) {
  constexpr int naps = 20;
  wait_group wg;
  const stopwatch w;
  wg.add(static_cast<int>(a.n));
  for (std::uint64_t i = 0; i < a.n; ++i) {
    weft::go([&] {
      for (int k = 0; k < naps; ++k) nap();
      wg.done();
    });
  }
  wg.wait();
  return w.stop(a.n * naps);
}
const registered naps_workload{{"blocking_naps", 200, 20, blocking_naps}};

[[gnu::noinline]] void nothing() { asm volatile(""); }

outcome blocking_empty(const arguments& a) {
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) weft::blocking([] { nothing(); });
  return w.stop(a.n);
}
const registered empty_workload{{"blocking_empty", 20'000'000, 200'000, blocking_empty}};

// Each task needs 30 ms of CPU time, however often it is interrupted.
void burn() {
  const auto cpu = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1'000'000'000L + t.tv_nsec;
  };
  std::uint64_t turns = 0;
  for (const auto end = cpu() + 30'000'000; cpu() < end;) ++turns;
}

outcome crowd(const arguments& a) {
  wait_group wg;
  const stopwatch w;
  wg.add(static_cast<int>(a.n));
  for (std::uint64_t i = 0; i < a.n; ++i) {
    weft::go([&] {
      burn();
      wg.done();
    });
  }
  wg.wait();
  return tasks_outcome(w, a, 30ms);
}
const registered crowd_workload{{"crowd", 200, 4, crowd}};

}  // namespace
}  // namespace bench
