// Mutual exclusion. Compiled once <weft/mutex.h> exists.
#include <weft/weft.h>

#include <mutex>
#include <shared_mutex>

#include "sched.h"

namespace bench {
namespace {

outcome mutex_alone(const arguments& a) {
  weft::mutex mutex;
  std::uint64_t count = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    mutex.lock();
    ++count;
    mutex.unlock();
  }
  return w.stop(a.n, count == a.n);
}
const registered mutex_workload{{"mutex", 50'000'000, 5'000'000, mutex_alone}};

outcome mutex_contended(const arguments& a) {
  const std::uint64_t each = a.n / contenders;
  weft::mutex mutex;
  std::uint64_t count = 0;
  wait_group wg;
  wg.add(contenders);
  const stopwatch w;
  for (int g = 0; g < contenders; ++g) {
    weft::go([&] {
      for (std::uint64_t i = 0; i < each; ++i) {
        mutex.lock();
        ++count;
        mutex.unlock();
      }
      wg.done();
    });
  }
  wg.wait();
  return w.stop(each * contenders, count == each * contenders);
}
const registered mutex8_workload{{"mutex8", 10'000'000, 1'000'000, mutex_contended}};

outcome read_mostly(const arguments& a) {
  const std::uint64_t each = a.n / contenders;
  weft::shared_mutex mutex;
  guarded_pair pair;
  std::atomic<std::uint64_t> torn{0};
  wait_group wg;
  wg.add(contenders);
  const stopwatch w;
  for (int g = 0; g < contenders; ++g) {
    weft::go([&] {
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
      wg.done();
    });
  }
  wg.wait();
  return w.stop(each * contenders, torn == 0 && pair.a == each / writes_one_in * contenders);
}
const registered read_mostly_workload{{"read_mostly", 10'000'000, 1'000'000, read_mostly}};

}  // namespace
}  // namespace bench
