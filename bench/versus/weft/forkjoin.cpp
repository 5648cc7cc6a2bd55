#include <weft/weft.h>

#include "../common/harness.h"

namespace bench {
namespace {

// Forks one half of every call down to the leaves, without a cut-off: it is the fork and the join that are measured.
std::uint64_t fib(std::uint64_t n) {
  if (n < 2) return n;
  auto a = weft::async([n] { return fib(n - 1); });
  const std::uint64_t b = fib(n - 2);
  return a.get() + b;
}

// One operation is one fork: there are fib(n + 1) - 1 of them.
outcome fib_fork_join(const arguments& a) {
  const stopwatch w;
  const std::uint64_t result = fib(a.n);
  return w.stop(fib_serial(a.n + 1) - 1, result == fib_serial(a.n));
}
const registered fib_workload{{"fib", 27, 18, fib_fork_join}};

}  // namespace
}  // namespace bench
