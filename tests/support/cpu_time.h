// The CPU time of the whole process.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace test {

inline std::chrono::microseconds cpu_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// What is used of it in `window`, in which the calling thread sleeps. Threads that spin may take long to find their bed on a busy
// machine: the least of some tries, until one is below `enough`. Who never sleeps is found out all the same.
inline std::chrono::microseconds least_cpu_time(std::chrono::milliseconds window, std::chrono::microseconds enough, int tries) {
  auto least = std::chrono::microseconds::max();
  for (int i = 0; i < tries && least >= enough; ++i) {
    const auto before = cpu_time();
    std::this_thread::sleep_for(window);
    least = std::min(least, cpu_time() - before);
  }
  return least;
}

}  // namespace test
