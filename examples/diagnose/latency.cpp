// Symptom: everything takes long under load, although each piece of work is short.
// Cause: some goroutines compute for long without a call into weft, and the others wait behind them. sysmon takes the P from
// them when their slice is over, but that is milliseconds. The remedy is checkpoint() in the long loops, or more Ps.
#include <atomic>
#include <chrono>

#include "figures.h"

int main() {
  return weft::run(
      [] {
        using namespace std::chrono_literals;
        std::atomic<bool> stop{false};
        weft::wait_group wg;
        for (int i = 0; i < 3; ++i) {
          wg.go([&] {
            while (!stop.load(std::memory_order_relaxed)) {
            }
          });
        }
        for (int i = 0; i < 1000; ++i) {
          weft::sleep_for(100us);
          if (figure("/weft/preemptions/running:events") >= 20) break;
        }
        stop = true;
        wg.wait();
        std::printf("a goroutine that wakes every 100 microseconds, beside three that compute, on one P:\n");
        const double taken = show("/weft/preemptions/running:events");
        show("/weft/preemptions/cooperative:events");
        show("/sched/latencies:seconds");
        return verdict(taken >= 10, "Ps are taken from goroutines that do not give way by themselves");
      },
      {.procs = 1});
}
