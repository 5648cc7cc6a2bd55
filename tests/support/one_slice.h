// For tests of the order in which goroutines run: sysmon, when it ends a slice, puts those in line into another one.
#pragma once

#include <weft/weft.h>

#include "support/await.h"

namespace test {

// What f() returns, once it was called and no slice ended meanwhile.
template <class F>
auto in_one_slice(F f, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const auto interruptions = [] {
    const auto s = weft::runtime::read_sched_stats();
    return s.slices_ended + s.preempted_running + s.preempted_blocked + s.redistributed;
  };
  for (hang_limit limit(file, line);; limit.check()) {
    weft::yield();  // sysmon may have asked already
    const auto before = interruptions();
    auto result = f();
    if (interruptions() == before) return result;
  }
}

}  // namespace test
