// What a dump says about how long goroutines have waited, with a past that the test makes up.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <sstream>
#include <string>
#include <thread>

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

// As if whoever is in a blocking call, or has just begun to wait, had done so five minutes ago. 0 would be for ever unknown.
void let_five_minutes_pass() {
  weft::sched::for_each_goroutine([](const weft::gmp::goroutine& g) {
    auto& since = const_cast<weft::gmp::goroutine&>(g).waiting_since;
    if (since != 0) since -= 5 * minute_ns;
  });
}

TEST(a_dump, says_how_long_a_call_blocks_and_also_how_long_who_waited_from_the_start) {
  weft::run([] {
    weft::chan<int> c;
    weft::go([=] { c.recv(); });
    std::atomic<bool> go_on = false, in_call = false;
    weft::go([&] {
      const weft::blocking_region region;
      in_call = true;
      while (!go_on) std::this_thread::yield();
    });
    test::await([&] { return in_call && weft::runtime::read_sched_stats().parks != 0; });
    let_five_minutes_pass();
    const std::string text = dump();
    EXPECT_NE(text.find(" [chan receive, 5 minutes]:\n"), std::string::npos) << text;
    EXPECT_NE(text.find(" [syscall, 5 minutes]:\n"), std::string::npos) << text;
    go_on = true;
    c.close();
    test::await_solitude();
  });
}

}  // namespace
