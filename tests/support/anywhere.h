// What holds for goroutines holds for plain threads too, and for any number of Ps. A suite that derives from
// test::anywhere runs each of its tests as a goroutine of 1, 2 and 8 Ps and on a plain thread; test::crew starts
// helpers of both kinds.
#pragma once

#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/await.h"

namespace test {

enum class place { one_p, two_ps, eight_ps, plain_thread };

inline std::string name_of(const testing::TestParamInfo<place>& info) {
  switch (info.param) {
    case place::one_p:
      return "one_p";
    case place::two_ps:
      return "two_ps";
    case place::eight_ps:
      return "eight_ps";
    case place::plain_thread:
      return "plain_thread";
  }
  return "";
}

inline auto everywhere() { return testing::Values(place::one_p, place::two_ps, place::eight_ps, place::plain_thread); }

class anywhere : public testing::TestWithParam<place> {
 protected:
  template <class F>
  void here(F f) {
    switch (GetParam()) {
      case place::one_p:
        weft::run(f, {.procs = 1});
        break;
      case place::two_ps:
        weft::run(f, {.procs = 2});
        break;
      case place::eight_ps:
        weft::run(f, {.procs = 8});
        break;
      case place::plain_thread:
        weft::start({.procs = 2});
        f();
        await([] { return weft::runtime::num_goroutine() == 0; });
        weft::shutdown();
        break;
    }
  }
};

// Helpers, goroutines and plain threads. All have ended when the crew is destroyed.
class crew {
 public:
  crew() = default;
  crew(const crew&) = delete;
  ~crew() { wait(); }

  template <class F>
  void goroutine(F f) {
    ++started_;
    weft::go([this, f = std::move(f)]() mutable {
      f();
      ++ended_;
    });
  }

  template <class F>
  void thread(F f) {
    ++started_;
    threads_.emplace_back([this, f = std::move(f)]() mutable {
      f();
      ++ended_;
    });
  }

  // The odd ones are threads.
  template <class F>
  void either(int i, F f) {
    if (i % 2 == 0) {
      goroutine(std::move(f));
    } else {
      thread(std::move(f));
    }
  }

  // Independent of what is tested.
  void wait() {
    await([&] { return ended_.load() == started_; });
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }

 private:
  int started_ = 0;
  std::atomic<int> ended_{0};
  std::vector<std::thread> threads_;
};

// How often goroutines have parked, to see that one more has.
inline std::uint64_t parks() { return weft::runtime::read_sched_stats().parks; }

inline void await_parks(std::uint64_t count, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  await([&] { return parks() >= count; }, file, line);
}

}  // namespace test
