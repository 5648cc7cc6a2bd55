#include "sched/procs.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include <weft/blocking.h>
#include <weft/runtime.h>

#include "base/fatal.h"
#include "os/cpu_count.h"
#include "sched/lifecycle.h"
#include "sched/scheduler.h"

namespace weft::sched {
namespace {

// What set_max_procs() asked for while nothing ran; for the next start.
constinit std::atomic<int> asked_beforehand{0};

int procs_from_environment() noexcept {
  const char* text = std::getenv("WEFTPROCS");
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  if (*end == '\0' && n >= 1 && n <= max_procs_limit) return static_cast<int>(n);
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    base::text t;
    (t << "weft: WEFTPROCS=" << text << " is not a number from 1 to " << max_procs_limit << "; ignored\n").print();
  }
  return 0;
}

int procs_allowed(bool* certain = nullptr) { return std::min(os::default_procs(certain), max_procs_limit); }

}  // namespace

procs_choice choose_procs(int asked) {
  if (asked != 0) return {asked, false};
  if (const int n = asked_beforehand.exchange(0, std::memory_order_relaxed); n != 0) return {n, false};
  if (const int n = procs_from_environment(); n != 0) return {n, false};
  return {procs_allowed(), true};
}

void follow_limits() {
  if (!is_following()) return;
  bool certain = true;
  const int procs = procs_allowed(&certain);
  if (certain) change_procs_if_following(procs);  // else it is looked at again before long
}

}  // namespace weft::sched

namespace weft::runtime {

int max_procs() {
  const int procs = sched::sched.procs.load(std::memory_order_acquire);
  if (sched::sched.life.load(std::memory_order_acquire) == sched::phase::running) return procs;
  if (const int n = sched::asked_beforehand.load(std::memory_order_relaxed); n != 0) return n;
  if (procs != 0) return procs;
  if (const int n = sched::procs_from_environment(); n != 0) return n;
  return sched::procs_allowed();
}

int set_max_procs(int n) {
  const int before = max_procs();
  if (n < 1) return before;
  n = std::min(n, sched::max_procs_limit);
  // Stopping the world takes the caller's own P as well.
  return blocking([&] {
    if (const int was = sched::change_procs(n); was != 0) return was;
    sched::asked_beforehand.store(n, std::memory_order_relaxed);
    return before;
  });
}

}  // namespace weft::runtime
