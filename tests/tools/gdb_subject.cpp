// What gdb_test.py looks at: goroutines that wait, and then a stop (a breakpoint, or a core).
#include <weft/weft.h>

#include <chrono>
#include <cstdlib>

extern "C" [[gnu::noinline]] void everybody_waits() {
  if (std::getenv("WEFT_DUMP_CORE") != nullptr) std::abort();
  asm volatile("");
}

[[gnu::noinline]] void wait_in_a_function(weft::chan<int> c) {
  c.recv();
  asm volatile("");
}

int main() {
  weft::run(
      [] {
        weft::chan<int> c;
        const auto parks = weft::runtime::read_sched_stats().parks;
        for (int i = 0; i < 2; ++i) weft::go([=] { wait_in_a_function(c); });
        weft::go({.name = "sleepy"}, [] { weft::sleep_for(std::chrono::hours(1)); });
        weft::go([=] { weft::async([=] { wait_in_a_function(c); }).get(); });  // on the stack of who waits for it
        while (weft::runtime::read_sched_stats().parks < parks + 4) weft::yield();
        everybody_waits();
      },
      {.procs = 1});  // nobody steals the last one before it is waited for
}
