// A program that closes descriptors that are not its own, the poller's among them: it ends and says why, and does not hang.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

// The runtime opens files now and then, which get the lowest numbers that are free: these, and not the poller's.
void keep_low_numbers_for_others() {
  for (int i = 0; i < 8; ++i) {
    if (::dup(2) < 0) std::abort();
  }
}

const test::scenario closes_all("closes_all", [] {
  keep_low_numbers_for_others();
  weft::run([] {
    int ends[2];
    if (::pipe(ends) != 0) return;
    weft::go([&] { weft::pollable(ends[0]).wait_readable(); });
    weft::sleep_for(1ms);
    for (int fd = 3; fd < 256; ++fd) ::close(fd);
    for (;;) weft::sleep_for(1ms);
  });
});
TEST(broken_poller, ends_the_program_with_a_message) {
  const auto end = closes_all.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_NE(end.err.find("the poller fails: error 9"), std::string::npos) << end;
}

}  // namespace
