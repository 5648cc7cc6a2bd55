// Waiting for a condition. Tests never wait for time to pass: they wait until something is true, and a limit that no
// healthy run comes near turns a hang into a message.
#pragma once

#include <weft/weft.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "support/build.h"

namespace test {

class hang_limit {
 public:
  hang_limit(const char* file, int line) : file_(file), line_(line) {}

  void check() {
    if (++looks_ % 64 != 0 || std::chrono::steady_clock::now() < end_) return;
    std::fprintf(stderr, "%s:%d: the condition did not become true within %d s\n", file_, line_, seconds);
    std::abort();
  }

 private:
  static constexpr int seconds = under_sanitizer ? 240 : 180;

  const char* file_;
  int line_;
  unsigned looks_ = 0;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
};

// Until condition() is true: a goroutine yields to the others, a plain thread gives up its core.
template <class Condition>
void await(Condition condition, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hang_limit limit(file, line);
  while (!condition()) {
    if (weft::in_goroutine()) {
      weft::yield();
    } else {
      std::this_thread::yield();
    }
    limit.check();
  }
}

// A moment, without a call into weft.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// In a goroutine: until it is the only one. A goroutine is not gone yet when what it did can be seen, so those of an
// earlier test may be there still.
inline void await_solitude(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  await([] { return weft::runtime::num_goroutine() == 1; }, file, line);
}

// Until condition() is true, without a call into weft: a goroutine keeps its thread and its P.
template <class Condition>
void spin_until(Condition condition, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  hang_limit limit(file, line);
  while (!condition()) {
    std::this_thread::yield();
    limit.check();
  }
}

// For what must not happen: looks for as long as given, and says whether the condition was false all the time.
template <class Rep, class Period, class Condition>
bool stays_false(std::chrono::duration<Rep, Period> period, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + period;
  do {
    if (condition()) return false;
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return true;
}

}  // namespace test
