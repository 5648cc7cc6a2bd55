// Mutual exclusion between tasks. tbb::mutex blocks the thread after some spinning.
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/task_group.h>

#include "../common/harness.h"

namespace bench {
namespace {

outcome mutex_alone(const arguments& a) {
  tbb::mutex mutex;
  std::uint64_t count = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    const tbb::mutex::scoped_lock lock(mutex);
    ++count;
  }
  return w.stop(a.n, count == a.n);
}
const registered mutex_workload{{"mutex", 50'000'000, 5'000'000, mutex_alone}};

outcome mutex_contended(const arguments& a) {
  const std::uint64_t each = a.n / contenders;
  tbb::mutex mutex;
  std::uint64_t count = 0;
  tbb::task_group group;
  const stopwatch w;
  for (int g = 0; g < contenders; ++g) {
    group.run([&] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const tbb::mutex::scoped_lock lock(mutex);
        ++count;
      }
    });
  }
  group.wait();
  return w.stop(each * contenders, count == each * contenders);
}
const registered mutex8_workload{{"mutex8", 10'000'000, 1'000'000, mutex_contended}};

outcome read_mostly(const arguments& a) {
  const std::uint64_t each = a.n / contenders;
  tbb::rw_mutex mutex;
  guarded_pair pair;
  std::atomic<std::uint64_t> torn{0};
  tbb::task_group group;
  const stopwatch w;
  for (int g = 0; g < contenders; ++g) {
    group.run([&] {
      std::uint64_t unequal = 0;
      for (std::uint64_t i = 1; i <= each; ++i) {
        const bool write = i % writes_one_in == 0;
        const tbb::rw_mutex::scoped_lock lock(mutex, write);
        if (write) {
          ++pair.a;
          ++pair.b;
        } else {
          unequal += pair.a != pair.b;
        }
      }
      torn += unequal;
    });
  }
  group.wait();
  return w.stop(each * contenders, torn == 0 && pair.a == each / writes_one_in * contenders);
}
const registered read_mostly_workload{{"read_mostly", 10'000'000, 1'000'000, read_mostly}};

}  // namespace
}  // namespace bench
