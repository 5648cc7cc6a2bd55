// Symptom: twice the cores, and no faster.
// Cause: one lock that everybody needs. The time that goroutines wait for mutexes grows faster than the clock, and a dump
// shows them in sync.Mutex.Lock. The remedy is to split what the lock protects, or to hold it for less.
#include <chrono>
#include <mutex>

#include "figures.h"

int main() {
  return weft::run(
      [] {
        using clock = std::chrono::steady_clock;
        weft::mutex everything;
        weft::wait_group wg;
        const auto began = clock::now();
        for (int i = 0; i < 8; ++i) {
          wg.go([&] {
            for (int k = 0; k < 100; ++k) {
              std::lock_guard guard(everything);
              for (const auto end = clock::now() + std::chrono::microseconds(200); clock::now() < end;) {
              }
              weft::yield();  // with the lock: the others come, and wait
            }
          });
        }
        wg.wait();
        const double wall = std::chrono::duration<double>(clock::now() - began).count();
        std::printf("8 goroutines on 2 Ps that share one lock; %.3f s by the clock:\n", wall);
        const double waited = show("/sync/mutex/wait/total:seconds");
        return verdict(waited > wall, "more time is spent waiting for the lock than passes by the clock");
      },
      {.procs = 2});
}
