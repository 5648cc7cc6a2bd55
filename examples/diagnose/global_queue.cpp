// Symptom: the global queue (`runqueue=` of schedtrace) grows and grows.
// Cause: goroutines are started faster than they can be run, here by a plain thread, whose goroutines all go there. The
// remedy is to bound what is under way: a semaphore, group::set_limit(), a buffered channel.
#include <chrono>
#include <thread>

#include "figures.h"

int main() {
  return weft::run(
      [] {
        weft::wait_group wg;
        const int requests = 20'000;
        wg.add(requests);
        double longest = 0;
        std::thread producer([&] {
          for (int i = 0; i < requests; ++i) {
            weft::go([&] {
              for (const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
                   std::chrono::steady_clock::now() < end;) {
              }
              wg.done();
            });
            if (i % 1000 == 999) longest = std::max(longest, figure("/weft/runqueue/global:goroutines"));
          }
        });
        wg.wait();
        weft::blocking([&] { producer.join(); });
        std::printf("%d requests of 20 microseconds, from a thread that does not wait:\n", requests);
        std::printf("  %-45s %.0f\n", "longest global queue that was seen", longest);
        show("/weft/runqueue/global-batches:events");
        return verdict(longest >= 1000, "thousands wait in the global queue");
      },
      {.procs = 2});
}
