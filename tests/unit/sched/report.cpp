// What a dump says about how long goroutines have waited, with a past that the test makes up.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <sstream>
#include <string>

#include "os/clock.h"
#include "sched/stack.h"
#include "support/await.h"

namespace {

constexpr std::int64_t minute_ns = 60'000'000'000;

std::string dump() {
  std::ostringstream out;
  weft::runtime::dump_goroutines(out);
  return out.str();
}

// As if each goroutine that waits for a channel had begun to, the first of them `first` minutes ago, the next one minute later.
void backdate(int first) {
  weft::sched::for_each_goroutine([&first](const weft::gmp::goroutine& g) {
    if (g.state.load() != weft::gmp::status::waiting || g.reason != weft::detail::wait_reason::chan_receive) return;
    const_cast<weft::gmp::goroutine&>(g).waiting_since = weft::os::now_ns() - first-- * minute_ns - minute_ns / 2;
  });
}

TEST(a_dump, says_how_many_minutes_each_has_waited) {
  weft::run([] {
    weft::chan<int> c;
    const auto parks = weft::runtime::read_sched_stats().parks;
    for (int i = 0; i < 3; ++i) weft::go([=] { c.recv(); });
    test::await([=] { return weft::runtime::read_sched_stats().parks == parks + 3; });
    EXPECT_NE(dump().find(" [chan receive]:\n"), std::string::npos) << dump();
    backdate(3);
    const std::string text = dump();
    for (const char* minutes : {"1", "2", "3"}) {
      EXPECT_NE(text.find(" [chan receive, " + std::string(minutes) + " minutes]:\n"), std::string::npos) << text;
    }
    EXPECT_EQ(text.find("[running, "), std::string::npos) << text;
    c.close();
    test::await_solitude();
  });
}

}  // namespace
