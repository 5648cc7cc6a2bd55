// exit_goroutine() in the function of run(): the others go on, and run() never returns.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "support/await.h"
#include "support/subprocess.h"

namespace {

struct says_when_destroyed {
  const char* text;
  ~says_when_destroyed() { std::puts(text); }
};

[[noreturn]] void end_with(int code) {
  std::fflush(stdout);
  std::_Exit(code);
}

const test::scenario main_exits_and_another_goes_on("main_exits_and_another_goes_on", [] {
  weft::run(
      [] {
        weft::go([] {
          // Main is gone when this goroutine is the only one left.
          test::await([] { return weft::runtime::num_goroutine() == 1; });
          for (int i = 0; i < 1000; ++i) weft::yield();
          std::puts("the other went on");
          end_with(7);
        });
        says_when_destroyed frame{"main was unwound"};
        weft::exit_goroutine();
      },
      {.procs = 2});
  std::puts("run returned");
  end_with(1);
});

TEST(exit_goroutine_in_main, unwinds_main_and_lets_the_others_go_on) {
  const auto end = main_exits_and_another_goes_on.run();
  EXPECT_EQ(end.exit_code, 7) << end;
  EXPECT_EQ(end.out, "main was unwound\nthe other went on\n") << end;
}

const test::scenario many_go_on("many_go_on", [] {
  static std::atomic<int> ended = 0;
  constexpr int count = 1000;
  weft::run(
      [] {
        for (int i = 0; i < count; ++i) {
          weft::go([] {
            for (int k = 0; k < 10; ++k) weft::yield();
            weft::async([] { weft::yield(); }).get();
            if (++ended == count) end_with(7);
          });
        }
        weft::exit_goroutine();
      },
      {.procs = 1});
  end_with(1);
});

TEST(exit_goroutine_in_main, lets_the_others_spawn_and_wait) {
  const auto end = many_go_on.run();
  EXPECT_EQ(end.exit_code, 7) << end;
}

}  // namespace
