// Tests of what must hold in a goroutine with one P, in one with several, and on a plain thread.
#pragma once

#include <gtest/gtest.h>
#include <weft/weft.h>

#include <cstddef>
#include <string>

#include "support/await.h"
#include "support/without_preemption.h"

namespace test {

enum class place { goroutine_of_one_p, goroutine_of_many_ps, plain_thread };

class anywhere : public testing::TestWithParam<place> {
 protected:
  // Runs f there, and waits until the goroutines that it started have ended.
  template <class F>
  void here(F f) {
    const std::size_t frozen = weft::runtime::num_goroutine();
    switch (GetParam()) {
      case place::goroutine_of_one_p:
      case place::goroutine_of_many_ps:
        weft::run(
            [&] {
              f();
              test::await([&] { return weft::runtime::num_goroutine() <= frozen + 1; });
            },
            {.procs = GetParam() == place::goroutine_of_one_p ? 1 : 4});
        break;
      case place::plain_thread:
        weft::start({.procs = 2});
        f();
        test::await([&] { return weft::runtime::num_goroutine() <= frozen; });
        weft::shutdown();
        break;
    }
  }
};

inline auto all_places() {
  return testing::Values(place::goroutine_of_one_p, place::goroutine_of_many_ps, place::plain_thread);
}

inline std::string name_of_place(const testing::TestParamInfo<place>& where) {
  switch (where.param) {
    case place::goroutine_of_one_p:
      return "goroutine_of_one_p";
    case place::goroutine_of_many_ps:
      return "goroutine_of_many_ps";
    case place::plain_thread:
      return "plain_thread";
  }
  return "";
}

// With one P, and without preemption: lets every other goroutine run until it waits. What is runnable now has run after one
// yield; each of them may have made others runnable.
inline void let_others_run() {
  for (int i = 0; i < 100; ++i) weft::yield();
}

}  // namespace test
