// A channel of times is in a heap while somebody waits on it, and at no other time.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>

#include "sched/scheduler.h"
#include "support/anywhere.h"

namespace {

using namespace std::chrono_literals;

std::size_t timers_in_heaps() {
  std::size_t n = 0;
  for (int i = 0; i < weft::sched::sched.procs.load(); ++i) n += weft::sched::processor_at(i)->timers.size();
  return n;
}

class a_time_channel : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, a_time_channel, test::everywhere(), test::name_of);

TEST_P(a_time_channel, is_in_a_heap_once_however_many_wait) {
  here([] {
    const std::size_t before = timers_in_heaps();
    weft::timer t(1h);
    EXPECT_EQ(timers_in_heaps(), before);
    test::crew crew;
    const auto parks = test::parks();
    std::atomic<int> received = 0;
    for (int i = 0; i < 3; ++i) {
      crew.goroutine([&] {
        t.channel().recv();
        ++received;
      });
    }
    test::await_parks(parks + 3);
    EXPECT_EQ(timers_in_heaps(), before + 1);
    t.stop();
    EXPECT_EQ(timers_in_heaps(), before) << "nobody waits for a time";
    for (int i = 0; i < 3; ++i) {
      t.reset(1h);
      EXPECT_EQ(timers_in_heaps(), before + 1);
      t.reset(0s);
      test::await([&] { return received == i + 1; });
    }
    crew.wait();
    EXPECT_EQ(timers_in_heaps(), before);
  });
}

TEST_P(a_time_channel, leaves_the_heap_with_the_select_that_chose_otherwise) {
  here([] {
    const std::size_t before = timers_in_heaps();
    weft::timer t(1h);
    weft::chan<int> other;
    test::crew crew;
    const auto parks = test::parks();
    crew.goroutine([&] { weft::select(weft::on_recv(t.channel()), weft::on_recv(t.channel()), weft::on_recv(other)); });
    test::await_parks(parks + 1);
    EXPECT_EQ(timers_in_heaps(), before + 1);
    other.send(1);
    crew.wait();
    EXPECT_EQ(timers_in_heaps(), before);
    EXPECT_EQ(weft::select(weft::on_recv(t.channel()), weft::on_timeout(1ms)), 1u);
    EXPECT_EQ(timers_in_heaps(), before);
  });
}

TEST_P(a_time_channel, of_a_ticker_is_in_the_heap_between_two_ticks_only_if_somebody_waits) {
  here([] {
    const std::size_t before = timers_in_heaps();
    weft::ticker t(1ms);
    for (int i = 0; i < 5; ++i) {
      t.channel().recv();
      EXPECT_EQ(timers_in_heaps(), before);
    }
  });
}

TEST_P(a_time_channel, moves_in_the_heap_when_it_is_reset_while_somebody_waits) {
  here([] {
    weft::timer t(1h);
    test::crew crew;
    const auto parks = test::parks();
    crew.goroutine([&] { t.channel().recv(); });
    test::await_parks(parks + 1);
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(t.reset(std::chrono::minutes(100 - i)));
      EXPECT_EQ(timers_in_heaps(), 1u);
    }
    t.reset(0s);
    crew.wait();
  });
}

}  // namespace
