// Fork-join and mutual exclusion.
#include <array>
#include <numeric>

#include "fibers.h"

namespace bench {
namespace {

// Forks one half of every call down to the leaves, without a cut-off: it is the fork and the join that are measured.
std::uint64_t fib(std::uint64_t n) {
  if (n < 2) return n;
  std::uint64_t a = 0;
  auto forked = spawn_fiber([&a, n] { a = fib(n - 1); });
  const std::uint64_t b = fib(n - 2);
  forked.join();
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
  std::array<fibers::fiber, 10> children;
  for (std::uint64_t i = 0; i < sums.size(); ++i) {
    children[i] = spawn_fiber([&sum = sums[i], first = ordinal + i * (size / 10), size] { sum = skynet_node(first, size / 10); });
  }
  for (fibers::fiber& child : children) child.join();
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

outcome skynet_joined(const arguments& a) {
  const std::uint64_t leaves = power_of_ten_up_to(a.n);
  const stopwatch w;
  const std::uint64_t sum = skynet_node(0, leaves);
  return w.stop(leaves, sum == sum_below(leaves));
}
const registered skynet_join_workload{{"skynet_join", 1'000'000, 10'000, skynet_joined}};

outcome mutex_alone(const arguments& a) {
  fibers::mutex mutex;
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
  fibers::mutex mutex;
  std::uint64_t count = 0;
  wait_group wg(contenders);
  const stopwatch w;
  for (int g = 0; g < contenders; ++g) {
    go([&] {
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
