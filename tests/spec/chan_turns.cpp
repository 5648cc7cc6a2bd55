// Elements whose moves are foreign code, through a small buffer that many crowd at: each place has its turns.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sstream>
#include <thread>
#include <utility>

namespace {

// An element whose moves let others run, so that many wait for their turn at one place.
struct slow_element {
  explicit slow_element(bool is = false) : is_slow(is) {}
  slow_element(slow_element&& o) noexcept : is_slow(std::exchange(o.is_slow, false)) {
    if (is_slow) weft::yield();
    ++moves_in_a_row;
    most_in_a_row = std::max(most_in_a_row.load(), moves_in_a_row.load());
  }
  slow_element& operator=(slow_element&&) = default;

  bool is_slow;
  static inline std::atomic<int> moves_in_a_row = 0, most_in_a_row = 0;  // since somebody has come back from a send or receive
};

TEST(turns, nobody_makes_the_moves_of_others_for_ever) {
  slow_element::moves_in_a_row = slow_element::most_in_a_row = 0;
  weft::run(
      [] {
        weft::chan<slow_element> ch(1);
        weft::wait_group all;
        for (int i = 0; i < 4; ++i) {
          all.go([=] {
            for (int k = 0; k < 2000; ++k) {
              ch.send(slow_element(true));
              slow_element::moves_in_a_row = 0;
            }
          });
          all.go([=] {
            for (int k = 0; k < 2000; ++k) {
              EXPECT_TRUE(ch.recv());
              slow_element::moves_in_a_row = 0;
            }
          });
        }
        all.wait();
      },
      {.procs = 1});
  EXPECT_LT(slow_element::most_in_a_row, 200);
}

// A P that was taken for a stop of the world is not given back to who sleeps until its turn comes.
TEST(turns, are_waited_for_while_the_world_stops) {
  std::atomic<bool> enough = false;
  std::thread stops([&] {
    while (!enough) {
      std::ostringstream out;
      weft::runtime::dump_goroutines(out);
    }
  });
  weft::run(
      [] {
        weft::chan<slow_element> ch(1);
        weft::go([=] {
          for (slow_element e(true);; e.is_slow = true) ch.send(std::move(e));
        });
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
        while (std::chrono::steady_clock::now() < end) (void)ch.recv();
      },
      {.procs = 1});
  enough = true;
  stops.join();
}

}  // namespace
