// Spawning, switching and waiting.
#include <atomic>

#include "threads.h"

namespace bench {
namespace {

outcome yield(const arguments& a) {
  const std::uint64_t each = a.n / yielders;
  std::atomic<std::uint64_t> total{0};
  std::vector<std::thread> threads;
  const stopwatch w;
  for (int g = 0; g < yielders; ++g) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < each; ++i) std::this_thread::yield();
      total += each;
    });
  }
  for (std::thread& t : threads) t.join();
  return w.stop(each * yielders, total == each * yielders);
}
const registered yield_workload{{"yield", 400'000, 40'000, yield}};

outcome spawn(const arguments& a) {
  wait_group wg(a.n);
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) go([&wg] { wg.done(); });
  wg.wait();
  return w.stop(a.n);
}
const registered spawn_workload{{"spawn", 10'000, 1'000, spawn}};

outcome spawn_join(const arguments& a) {
  std::uint64_t sum = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    std::uint64_t value = 0;
    std::thread([&value, i] { value = i; }).join();
    sum += value;
  }
  return w.stop(a.n, sum == sum_below(a.n));
}
const registered spawn_join_workload{{"spawn_join", 10'000, 1'000, spawn_join}};

outcome conserve(const arguments& a) {
  wait_group wg(a.n);
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    go([&wg] {
      spin_for(task_length);
      wg.done();
    });
  }
  wg.wait();
  return tasks_outcome(w, a, task_length);
}
const registered conserve_workload{{"conserve", 10'000, 1'000, conserve}};

// Only what does not depend on how many there are: the kernel's part of a thread's memory is not in the resident set.
outcome parked(const arguments& a) {
  const double before = resident_bytes();
  std::atomic<std::uint64_t> woken{0};
  channel<char> gate;
  wait_group ready(a.n);
  wait_group ended(a.n);
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    go([&] {
      ready.done();
      gate.recv();
      ++woken;
      ended.done();
    });
  }
  ready.wait();
  outcome out = w.stop(a.n);
  out.extra = {{"bytes_each", (resident_bytes() - before) / static_cast<double>(a.n)}};
  gate.close();
  ended.wait();
  out.ok = woken == a.n;
  return out;
}
const registered parked_workload{{"parked", 2'000, 0, parked}};

}  // namespace
}  // namespace bench
