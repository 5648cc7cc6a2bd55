// Symptom: everything takes long under load, although each piece of work is short.
// Cause: some goroutines compute for long without a call into weft, and the others wait behind them. sysmon takes the P from
// them when their slice is over, but that is milliseconds. The remedy is checkpoint() in the long loops, or more Ps.
#include <atomic>
#include <chrono>

#include "figures.h"

namespace {

std::uint64_t measured() {
  for (const auto& m : weft::runtime::read_metrics()) {
    if (m.name == "/sched/latencies:seconds") return m.distribution().total();
  }
  return 0;
}

}  // namespace

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
        for (int i = 0; i < 200; ++i) {
          wg.go([&] {
            while (!stop.load(std::memory_order_relaxed)) weft::sleep_for(100us);
          });
        }
        // One wakeup in 256 is measured: until there are some dozens of them, or half a minute is over.
        for (int i = 0; i < 300'000 && measured() < 32; ++i) weft::sleep_for(100us);
        stop = true;
        wg.wait();
        std::printf("200 goroutines that wake every 100 microseconds, beside three that compute, on one P:\n");
        const double late = show("/sched/latencies:seconds");
        const double taken = show("/weft/preemptions/running:events");
        show("/weft/preemptions/cooperative:events");
        return verdict(late >= 0.0005 && taken >= 10, "who is woken runs late, since Ps must be taken from goroutines that do not give way");
      },
      {.procs = 1});
}
