// Parking for good.
#pragma once

#include <weft/weft.h>

#include <atomic>
#include <cstdlib>

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

}  // namespace test
