// Spawning, switching and waiting: what the scheduler alone costs.
#include "sched.h"

#include <algorithm>
#include <vector>

namespace bench {

outcome yield(const arguments& a) {
  const std::uint64_t each = a.n / yielders;
  std::vector<weft::future<std::uint64_t>> goroutines;
  const stopwatch w;
  for (int g = 0; g < yielders; ++g) {
    goroutines.push_back(weft::async([each] {
      for (std::uint64_t i = 0; i < each; ++i) weft::yield();
      return each;
    }));
  }
  std::uint64_t total = 0;
  for (auto& g : goroutines) total += g.get();
  return w.stop(total, total == each * yielders);
}

// The wait group is the check: it lets go after exactly n calls of done().
outcome spawn(const arguments& a) {
  wait_group wg;
  const stopwatch w;
  wg.add(static_cast<int>(a.n));
  for (std::uint64_t i = 0; i < a.n; ++i) weft::go([&wg] { wg.done(); });
  wg.wait();
  return w.stop(a.n);
}

namespace {

const registered yield_workload{{"yield", 4'000'000, 400'000, yield}};
const registered spawn_workload{{"spawn", 1'000'000, 100'000, spawn}};

outcome spawn_join(const arguments& a) {
  std::uint64_t sum = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) sum += weft::async([i] { return i; }).get();
  return w.stop(a.n, sum == sum_below(a.n));
}
const registered spawn_join_workload{{"spawn_join", 1'000'000, 100'000, spawn_join}};

outcome conserve(const arguments& a) {
  wait_group wg;
  const stopwatch w;
  wg.add(static_cast<int>(a.n));
  for (std::uint64_t i = 0; i < a.n; ++i) {
    weft::go([&wg] {
      spin_for(task_length);
      wg.done();
    });
  }
  wg.wait();
  return tasks_outcome(w, a, task_length);
}
const registered conserve_workload{{"conserve", 10'000, 1'000, conserve}};

// What it takes the others to get their share of what one goroutine has spawned. The quiet before each burst, in which they
// go to sleep, is not measured.
outcome steal_burst(const arguments& a) {
  std::chrono::nanoseconds bursts{};
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    spin_for(quiet_time);
    const auto start = clock::now();
    wait_group wg;
    wg.add(burst_tasks);
    for (int t = 0; t < burst_tasks; ++t) {
      weft::go([&wg] {
        spin_for(burst_task_length);
        wg.done();
      });
    }
    wg.wait();
    bursts += clock::now() - start;
  }
  return burst_outcome(w, a, bursts);
}
const registered steal_burst_workload{{"steal_burst", 1'000, 50, steal_burst}};

// The same number of switches among ever more goroutines.
outcome yield_n(const arguments& a) {
  const std::uint64_t each = std::max<std::uint64_t>(crowd_yields / a.n, 1);
  std::atomic<std::uint64_t> total{0};
  wait_group wg;
  wg.add(static_cast<int>(a.n));
  const stopwatch w;
  for (std::uint64_t g = 0; g < a.n; ++g) {
    weft::go([&, each] {
      for (std::uint64_t i = 0; i < each; ++i) weft::yield();
      total.fetch_add(each, std::memory_order_relaxed);
      wg.done();
    });
  }
  wg.wait();
  return w.stop(each * a.n, total == each * a.n);
}
const registered yield_n_workload{{"yield_n", 1'000, 0, yield_n}};

// The same number of goroutines, n at a time.
outcome spawn_n(const arguments& a) {
  const std::uint64_t rounds = std::max<std::uint64_t>(crowd_spawns / a.n, 1);
  const stopwatch w;
  for (std::uint64_t r = 0; r < rounds; ++r) spawn(a);
  return w.stop(rounds * a.n);
}
const registered spawn_n_workload{{"spawn_n", 1'000, 0, spawn_n}};

outcome spawn_to_run(const arguments& a) {
  std::vector<std::chrono::nanoseconds> late(a.n);
  const stopwatch w;
  for (auto& sample : late) {
    spin_for(quiet_time);
    std::atomic<bool> ran{false};
    const auto start = clock::now();
    weft::go([&sample, &ran, start] {
      sample = clock::now() - start;
      ran.store(true, std::memory_order_release);
    });
    while (!ran.load(std::memory_order_acquire)) {
    }
  }
  outcome out = w.stop(a.n);
  add_percentiles(out, late);
  out.ok = late.front() > std::chrono::nanoseconds::zero();
  return out;
}
const registered spawn_to_run_workload{{"spawn_to_run", 5'000, 100, spawn_to_run}};

}  // namespace
}  // namespace bench
