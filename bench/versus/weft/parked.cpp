// What goroutines cost that do nothing: the memory of a parked one, what a crowd of them costs the others, and an idle
// runtime.
#include <sys/resource.h>

#include <thread>

#include "sched.h"

namespace bench {
namespace {

class crowd {
 public:
  // Returns once n goroutines stand at the gate.
  explicit crowd(std::uint64_t n) {
    if (n == 0) return;
    wait_group ready;
    ready.add(static_cast<int>(n));
    out_.add(static_cast<int>(n));
    for (std::uint64_t i = 0; i < n; ++i) {
      weft::go([this, &ready] {
        ready.done();
        gate_.wait();
        woken_.fetch_add(1, std::memory_order_relaxed);
        out_.done();
      });
    }
    ready.wait();
    size_ = n;
  }

  // Wakes them all and returns how many, once each has run to its end.
  std::uint64_t dismiss() {
    gate_.open();
    if (size_ > 0) out_.wait();
    return woken_;
  }

 private:
  std::uint64_t size_ = 0;
  gate gate_;
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

outcome parked_cost(const arguments& a) {
  const arguments yields{.n = 800'000, .procs = a.procs};
  const arguments spawns{.n = 100'000, .procs = a.procs};
  yield(yields);
  spawn(spawns);
  struct level {
    std::string suffix;
    std::uint64_t parked;
    double yield = 0;
    double spawn = 0;
  } levels[] = {{"none", 0}, {"few", a.n / 100}, {"all", a.n}};
  bool ok = true;
  const stopwatch w;
  for (level& l : levels) {
    crowd c(l.parked);
    l.yield = median_ns(yield, yields, ok);
    l.spawn = median_ns(spawn, spawns, ok);
    ok = c.dismiss() == l.parked && ok;
  }
  outcome out = w.stop(std::size(levels) * 3 * (yields.n + spawns.n), ok);
  for (const level& l : levels) {
    out.extra.emplace_back("yield_" + l.suffix, l.yield);
    out.extra.emplace_back("spawn_" + l.suffix, l.spawn);
  }
  out.extra.emplace_back("yield_growth", levels[2].yield / levels[0].yield);
  out.extra.emplace_back("spawn_growth", levels[2].spawn / levels[0].spawn);
  return out;
}
const registered parked_cost_workload{{"parked_cost", 1'000'000, 0, parked_cost}};

std::int64_t context_switches() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u.ru_nvcsw + u.ru_nivcsw;
}

// n seconds in which nothing happens, after all Ps have had work. Runs on a plain thread: see main.cpp.
outcome idle(const arguments& a) {
  std::atomic<std::uint64_t> ran{0};
  constexpr std::uint64_t some = 10'000;
  for (std::uint64_t i = 0; i < some; ++i) {
    weft::go([&ran] {
      weft::yield();
      ran.fetch_add(1, std::memory_order_release);
    });
  }
  while (ran.load(std::memory_order_acquire) < some) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the last spinner goes to sleep

  const std::int64_t switches = context_switches();
  const stopwatch w;
  std::this_thread::sleep_for(std::chrono::seconds(a.n));
  outcome out = w.stop(a.n);
  const double seconds = std::chrono::duration<double>(out.wall).count();
  out.extra = {{"cpu_percent", 100 * std::chrono::duration<double>(out.cpu).count() / seconds},
               {"switches_per_s", static_cast<double>(context_switches() - switches) / seconds}};
  return out;
}
const registered idle_workload{{"idle", 10, 0, idle}};

}  // namespace
}  // namespace bench
