// Spawning, forking and joining.
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include "../common/harness.h"

namespace bench {
namespace {

outcome spawn(const arguments& a) {
  std::atomic<std::uint64_t> ran{0};
  tbb::task_group group;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) group.run([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
  group.wait();
  return w.stop(a.n, ran == a.n);
}
const registered spawn_workload{{"spawn", 1'000'000, 100'000, spawn}};

// The same number of tasks, n at a time.
outcome spawn_n(const arguments& a) {
  const std::uint64_t rounds = std::max<std::uint64_t>(crowd_spawns / a.n, 1);
  bool ok = true;
  const stopwatch w;
  for (std::uint64_t r = 0; r < rounds; ++r) ok = spawn(a).ok && ok;
  return w.stop(rounds * a.n, ok);
}
const registered spawn_n_workload{{"spawn_n", 1'000, 0, spawn_n}};

outcome spawn_join(const arguments& a) {
  std::uint64_t sum = 0;
  tbb::task_group group;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    std::uint64_t value = 0;
    group.run([&value, i] { value = i; });
    group.wait();
    sum += value;
  }
  return w.stop(a.n, sum == sum_below(a.n));
}
const registered spawn_join_workload{{"spawn_join", 1'000'000, 100'000, spawn_join}};

outcome conserve(const arguments& a) {
  tbb::task_group group;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) group.run([] { spin_for(task_length); });
  group.wait();
  return tasks_outcome(w, a, task_length);
}
const registered conserve_workload{{"conserve", 10'000, 1'000, conserve}};

// The quiet before each burst is not measured.
outcome steal_burst(const arguments& a) {
  std::chrono::nanoseconds bursts{};
  tbb::task_group group;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    spin_for(quiet_time);
    const auto start = clock::now();
    for (int t = 0; t < burst_tasks; ++t) group.run([] { spin_for(burst_task_length); });
    group.wait();
    bursts += clock::now() - start;
  }
  return burst_outcome(w, a, bursts);
}
const registered steal_burst_workload{{"steal_burst", 1'000, 50, steal_burst}};

// Forks one half of every call down to the leaves, without a cut-off: it is the fork and the join that are measured.
std::uint64_t fib(std::uint64_t n) {
  if (n < 2) return n;
  std::uint64_t a = 0;
  tbb::task_group group;
  group.run([&a, n] { a = fib(n - 1); });
  const std::uint64_t b = fib(n - 2);
  group.wait();
  return a + b;
}

// One operation is one fork: there are fib(n + 1) - 1 of them.
outcome fib_fork_join(const arguments& a) {
  const stopwatch w;
  const std::uint64_t result = fib(a.n);
  return w.stop(fib_serial(a.n + 1) - 1, result == fib_serial(a.n));
}
const registered fib_workload{{"fib", 27, 18, fib_fork_join}};

// The sum of the ordinals of the `size` leaves below a node, returned by way of memory.
std::uint64_t skynet_node(std::uint64_t ordinal, std::uint64_t size) {
  if (size == 1) return ordinal;
  std::array<std::uint64_t, 10> sums{};
  tbb::task_group group;
  for (std::uint64_t i = 0; i < sums.size(); ++i) {
    group.run([&sum = sums[i], first = ordinal + i * (size / 10), size] { sum = skynet_node(first, size / 10); });
  }
  group.wait();
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

outcome skynet_joined(const arguments& a) {
  const std::uint64_t leaves = power_of_ten_up_to(a.n);
  const stopwatch w;
  const std::uint64_t sum = skynet_node(0, leaves);
  return w.stop(leaves, sum == sum_below(leaves));
}
const registered skynet_join_workload{{"skynet_join", 1'000'000, 10'000, skynet_joined}};

}  // namespace
}  // namespace bench
