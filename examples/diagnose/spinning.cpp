// Symptom: threads spin, and find nothing.
// Cause: work comes in crumbs. Each one wakes a thread, which looks around, finds that the crumb is gone, and goes back to
// sleep. The remedy is to hand out work in larger pieces.
#include <chrono>

#include "figures.h"

namespace {

void work_for(std::chrono::microseconds d) {
  for (const auto end = std::chrono::steady_clock::now() + d; std::chrono::steady_clock::now() < end;) {
  }
}

}  // namespace

int main() {
  return weft::run(
      [] {
        using namespace std::chrono_literals;
        weft::wait_group wg;
        const int crumbs = 3000;
        for (int i = 0; i < crumbs; ++i) {
          wg.go([] {});
          work_for(60us);  // longer than a thread spins
        }
        wg.wait();
        std::printf("%d goroutines that do nothing, one every 60 microseconds:\n", crumbs);
        const double spins = show("/weft/spins:events");
        const double wakeups = show("/weft/threads/wakeups:events");
        show("/weft/steals/attempts:events");
        show("/weft/steals/done:events");
        return verdict(spins + wakeups >= crumbs / 10, "threads are woken, and spin, for next to nothing");
      },
      {.procs = 4});
}
