// Without preemption by signals: who calls into weft gives way there, also after the world was stopped in the meantime.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

const test::scenario computes_beside_dumps("computes_beside_dumps", [] {
  weft::run(
      [] {
        weft::go([] {
          for (;;) {
            const auto end = std::chrono::steady_clock::now() + 1ms;
            while (std::chrono::steady_clock::now() < end) {
            }
            weft::checkpoint();
          }
        });
        for (int i = 0; i < 100; ++i) {
          weft::sleep_for(1ms);
          std::ostringstream ignored;
          weft::runtime::dump_goroutines(ignored);
        }
      },
      {.procs = 1});
});
TEST(without_signals, who_was_asked_to_give_way_before_the_world_stopped_is_asked_again) {
  const auto end = computes_beside_dumps.run({{"WEFTDEBUG", "asyncpreemptoff=1,slice=1"}});
  EXPECT_EQ(end.exit_code, 0) << end;
}

}  // namespace
