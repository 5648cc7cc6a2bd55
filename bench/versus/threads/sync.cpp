// Mutual exclusion.
#include <atomic>
#include <shared_mutex>

#include "threads.h"

namespace bench {
namespace {

outcome mutex_alone(const arguments& a) {
  std::mutex mutex;
  std::uint64_t count = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    const std::lock_guard lock(mutex);
    ++count;
  }
  return w.stop(a.n, count == a.n);
}
const registered mutex_workload{{"mutex", 50'000'000, 5'000'000, mutex_alone}};

outcome mutex_contended(const arguments& a) {
  const std::uint64_t each = a.n / contenders;
  std::mutex mutex;
  std::uint64_t count = 0;
  std::vector<std::thread> threads;
  const stopwatch w;
  for (int g = 0; g < contenders; ++g) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return w.stop(each * contenders, count == each * contenders);
}
const registered mutex8_workload{{"mutex8", 10'000'000, 1'000'000, mutex_contended}};

outcome read_mostly(const arguments& a) {
  const std::uint64_t each = a.n / contenders;
  std::shared_mutex mutex;
  guarded_pair pair;
  std::atomic<std::uint64_t> torn{0};
  std::vector<std::thread> threads;
  const stopwatch w;
  for (int g = 0; g < contenders; ++g) {
    threads.emplace_back([&] {
      std::uint64_t unequal = 0;
      for (std::uint64_t i = 1; i <= each; ++i) {
        if (i % writes_one_in == 0) {
          const std::lock_guard lock(mutex);
          ++pair.a;
          ++pair.b;
        } else {
          const std::shared_lock lock(mutex);
          unequal += pair.a != pair.b;
        }
      }
      torn += unequal;
    });
  }
  for (std::thread& t : threads) t.join();
  return w.stop(each * contenders, torn == 0 && pair.a == each / writes_one_in * contenders);
}
const registered read_mostly_workload{{"read_mostly", 10'000'000, 1'000'000, read_mostly}};

}  // namespace
}  // namespace bench
