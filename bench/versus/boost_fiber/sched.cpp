// Spawning, switching and waiting: what the scheduler alone costs.
#include <algorithm>
#include <vector>

#include "fibers.h"

namespace bench {
namespace {

outcome yield(const arguments& a) {
  const std::uint64_t each = a.n / yielders;
  std::atomic<std::uint64_t> total{0};
  wait_group wg(yielders);
  const stopwatch w;
  for (int g = 0; g < yielders; ++g) {
    go([&] {
      for (std::uint64_t i = 0; i < each; ++i) boost::this_fiber::yield();
      total.fetch_add(each, std::memory_order_relaxed);
      wg.done();
    });
  }
  wg.wait();
  return w.stop(each * yielders, total == each * yielders);
}
const registered yield_workload{{"yield", 4'000'000, 400'000, yield}};

outcome spawn(const arguments& a) {
  wait_group wg(static_cast<std::int64_t>(a.n));
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) go([&wg] { wg.done(); });
  wg.wait();
  return w.stop(a.n);
}
const registered spawn_workload{{"spawn", 1'000'000, 100'000, spawn}};

outcome spawn_join(const arguments& a) {
  std::uint64_t sum = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    std::uint64_t value = 0;
    spawn_fiber([&value, i] { value = i; }).join();
    sum += value;
  }
  return w.stop(a.n, sum == sum_below(a.n));
}
const registered spawn_join_workload{{"spawn_join", 1'000'000, 100'000, spawn_join}};

outcome conserve(const arguments& a) {
  wait_group wg(static_cast<std::int64_t>(a.n));
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

// The quiet before each burst is not measured.
outcome steal_burst(const arguments& a) {
  std::chrono::nanoseconds bursts{};
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    spin_for(quiet_time);
    const auto start = clock::now();
    wait_group wg(burst_tasks);
    for (int t = 0; t < burst_tasks; ++t) {
      go([&wg] {
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

outcome yield_n(const arguments& a) {
  const std::uint64_t each = std::max<std::uint64_t>(crowd_yields / a.n, 1);
  std::atomic<std::uint64_t> total{0};
  wait_group wg(static_cast<std::int64_t>(a.n));
  const stopwatch w;
  for (std::uint64_t g = 0; g < a.n; ++g) {
    go([&, each] {
      for (std::uint64_t i = 0; i < each; ++i) boost::this_fiber::yield();
      total.fetch_add(each, std::memory_order_relaxed);
      wg.done();
    });
  }
  wg.wait();
  return w.stop(each * a.n, total == each * a.n);
}
const registered yield_n_workload{{"yield_n", 1'000, 0, yield_n}};

outcome spawn_n(const arguments& a) {
  const std::uint64_t rounds = std::max<std::uint64_t>(crowd_spawns / a.n, 1);
  const stopwatch w;
  for (std::uint64_t r = 0; r < rounds; ++r) spawn(a);
  return w.stop(rounds * a.n);
}
const registered spawn_n_workload{{"spawn_n", 1'000, 0, spawn_n}};

// Fibers that are all blocked in a pop from one channel.
class crowd {
 public:
  // Returns once n fibers stand at the gate.
  explicit crowd(std::uint64_t n) : out_(static_cast<std::int64_t>(n)) {
    if (n == 0) return;
    wait_group ready(static_cast<std::int64_t>(n));
    for (std::uint64_t i = 0; i < n; ++i) {
      go([this, &ready] {
        ready.done();
        int nothing = 0;
        if (gate_.pop(nothing) == fibers::channel_op_status::closed) woken_.fetch_add(1, std::memory_order_relaxed);
        out_.done();
      });
    }
    ready.wait();
    boost::this_fiber::yield();
  }

  // Wakes them all and returns how many, once each has run to its end.
  std::uint64_t dismiss() {
    gate_.close();
    out_.wait();
    return woken_;
  }

 private:
  fibers::unbuffered_channel<int> gate_;
  std::atomic<std::uint64_t> woken_{0};
  wait_group out_;
};

outcome parked(const arguments& a) {
  const double before = resident_bytes();
  const stopwatch w;
  crowd c(a.n);
  outcome out = w.stop(a.n);
  const double each = (resident_bytes() - before) / static_cast<double>(a.n);
  const auto start = clock::now();
  out.ok = c.dismiss() == a.n;
  out.extra = {
      {"create_ms", milliseconds(out.wall)}, {"bytes_each", each}, {"wake_ms", milliseconds(clock::now() - start)}};
  return out;
}
const registered parked_workload{{"parked", 1'000'000, 0, parked}};

}  // namespace
}  // namespace bench
