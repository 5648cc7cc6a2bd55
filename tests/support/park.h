// Goroutines that are parked.
#pragma once

#include <weft/weft.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <variant>

#include "support/await.h"

namespace test {

// Keeps neither a P nor a thread busy, as a loop of yields would: waits for a goroutine that waits for itself.
[[noreturn]] inline void park_for_ever() {
  weft::future<void> never;
  std::atomic<bool> assigned = false;
  never = weft::async([&] {
    await([&] { return assigned.load(); });
    never.wait();
  });
  assigned = true;
  never.wait();
  std::abort();
}

// How many goroutines wait for something now: off their threads.
inline std::uint64_t waiting_goroutines() {
  for (const weft::runtime::metric& m : weft::runtime::read_metrics()) {
    if (m.name == "/sched/goroutines/waiting:goroutines") return std::get<std::uint64_t>(m.value);
  }
  return 0;
}

}  // namespace test
