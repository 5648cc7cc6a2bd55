// Symptom: all CPUs are busy, and little is done.
// Cause: goroutines wait by asking again and again. They are never idle, so nothing looks stuck; but nearly every choice of
// the scheduler is a yield. The remedy is to wait: a channel, a condition variable, a latch.
#include <atomic>
#include <chrono>

#include "figures.h"

int main() {
  return weft::run(
      [] {
        std::atomic<int> turn{0};
        weft::wait_group wg;
        const int rounds = 200, parties = 50;
        for (int me = 0; me < parties; ++me) {
          wg.go([&, me] {
            for (int r = 0; r < rounds; ++r) {
              while (turn.load() != (r + 1) * parties - 1 - me) weft::yield();  // the last comes first
              ++turn;
            }
          });
        }
        wg.wait();
        std::printf("%d goroutines take %d turns, each waiting for its own by yielding:\n", parties, rounds * parties);
        const double yields = show("/weft/yields:events");
        show("/weft/parks:events");
        return verdict(yields > 5.0 * rounds * parties, "many yields for each turn, and hardly a park");
      },
      {.procs = 2});
}
