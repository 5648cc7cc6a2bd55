// Sleeping, and what the kernel does for those who wait beside somebody who computes.
#include <atomic>

#include "threads.h"

namespace bench {
namespace {

using namespace std::chrono_literals;

std::vector<std::chrono::nanoseconds> naps(std::uint64_t n) {
  std::vector<std::chrono::nanoseconds> late(n);
  for (auto& sample : late) {
    const auto began = clock::now();
    std::this_thread::sleep_for(1ms);
    sample = clock::now() - began - 1ms;
  }
  return late;
}

outcome sleep_lateness(const arguments& a) {
  const stopwatch w;
  auto late = naps(a.n);
  outcome out = w.stop(a.n);
  add_percentiles(out, late);
  return out;
}
const registered sleep_workload{{"sleep1ms", 2'000, 10, sleep_lateness}};

outcome hog(const arguments& a) {
  std::atomic<bool> stop{false};
  std::uint64_t turns = 0;
  std::thread computing([&] {
    for (; !stop.load(std::memory_order_relaxed); ++turns) {
    }
  });
  const stopwatch w;
  auto late = naps(a.n);
  outcome out = w.stop(a.n);
  stop = true;
  computing.join();
  out.ok = turns > 0;
  add_percentiles(out, late);
  return out;
}
const registered hog_workload{{"hog", 500, 10, hog}};

outcome blocking_naps(const arguments& a) {
  constexpr int each = 20;
  std::vector<std::thread> threads;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < each; ++k) std::this_thread::sleep_for(1ms);
    });
  }
  for (std::thread& t : threads) t.join();
  return w.stop(a.n * each);
}
const registered naps_workload{{"blocking_naps", 200, 20, blocking_naps}};

}  // namespace
}  // namespace bench
