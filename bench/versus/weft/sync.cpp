// Mutual exclusion. Compiled once <weft/mutex.h> exists.
#include <weft/weft.h>

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

}  // namespace
}  // namespace bench
