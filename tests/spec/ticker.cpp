// ticker: a time on its channel again and again, for those who come for it.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/anywhere.h"

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

void let_pass(steady::time_point t) {
  test::await([&] { return steady::now() >= t; });
}

bool is_empty(const weft::ticker& t) {
  weft::time_point out;
  return t.channel().try_recv(out) == weft::recv_status::empty;
}

class a_ticker : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, a_ticker, test::everywhere(), test::name_of);

TEST_P(a_ticker, gives_multiples_of_its_period_one_after_the_other) {
  here([] {
    constexpr auto period = 2ms;
    const auto before = steady::now();
    weft::ticker t(period);
    const auto first = *t.channel().recv();
    EXPECT_GE(first, before + period);
    auto last = first;
    for (int i = 0; i < 10; ++i) {
      const auto tick = *t.channel().recv();
      EXPECT_GT(tick, last);
      EXPECT_EQ((tick - first) % period, 0ns);
      EXPECT_GE(steady::now(), tick);
      last = tick;
    }
    EXPECT_GE(last, first + 10 * period);
  });
}

TEST_P(a_ticker, drops_ticks_for_who_is_slow) {
  here([] {
    constexpr auto period = 5ms;
    weft::ticker t(period);
    const auto first = *t.channel().recv();
    const auto received = steady::now();  // on a slow machine, later than the tick after it, which is skipped then
    let_pass(first + 10 * period);
    const auto second = *t.channel().recv();
    EXPECT_EQ((second - first) % period, 0ns);
    EXPECT_GT(second, first);
    EXPECT_LE(second, received + period) << "the oldest one missed";
    weft::time_point out;
    const auto now = steady::now();
    if (t.channel().try_recv(out) == weft::recv_status::ok) {
      EXPECT_GT(out, first + 10 * period) << "one more, if the machine was slow; but not those in between";
    }
    EXPECT_GT(*t.channel().recv(), now - period);
  });
}

TEST_P(a_ticker, can_be_ranged_over) {
  here([] {
    weft::ticker t(1ms);
    int ticks = 0;
    for ([[maybe_unused]] weft::time_point tick : t.channel()) {
      if (++ticks == 5) break;
    }
    EXPECT_EQ(ticks, 5);
  });
}

TEST_P(a_ticker, that_is_stopped_ticks_no_more_and_its_channel_stays_open) {
  here([] {
    weft::ticker t(1ms);
    t.channel().recv();
    let_pass(steady::now() + 3ms);
    t.stop();
    EXPECT_TRUE(is_empty(t)) << "not even the tick that had come";
    EXPECT_EQ(weft::select(weft::on_recv(t.channel()), weft::on_timeout(5ms)), 1u);
    t.stop();
  });
}

TEST_P(a_ticker, that_is_reset_has_the_new_period_from_now_on) {
  here([] {
    weft::ticker t(1h);
    const auto before = steady::now();
    t.reset(3ms);
    const auto first = *t.channel().recv();
    EXPECT_GE(first, before + 3ms);
    EXPECT_EQ((*t.channel().recv() - first) % 3ms, 0ns);

    let_pass(steady::now() + 5ms);
    t.reset(1h);
    EXPECT_TRUE(is_empty(t));
  });
}

TEST_P(a_ticker, that_was_stopped_goes_on_when_it_is_reset) {
  here([] {
    weft::ticker t(1ms);
    t.stop();
    t.reset(1ms);
    EXPECT_TRUE(t.channel().recv());
    EXPECT_TRUE(t.channel().recv());
  });
}

TEST_P(a_ticker, needs_a_period_of_more_than_nothing) {
  here([] {
    EXPECT_THROW(weft::ticker(0ms), std::invalid_argument);
    EXPECT_THROW(weft::ticker(-1ms), std::logic_error);
    weft::ticker t(1ms);
    EXPECT_THROW(t.reset(0ms), std::invalid_argument);
    EXPECT_THROW(t.reset(-1h), std::invalid_argument);
    EXPECT_TRUE(t.channel().recv()) << "a reset that was refused changes nothing";
  });
}

TEST_P(a_ticker, of_an_immense_period_never_ticks) {
  here([] {
    weft::ticker t(std::chrono::hours::max());
    EXPECT_TRUE(is_empty(t));
    t.reset(std::chrono::nanoseconds::max());
    EXPECT_TRUE(is_empty(t));
  });
}

TEST_P(a_ticker, of_the_shortest_period_keeps_its_receiver_supplied) {
  here([] {
    weft::ticker t(1ns);
    auto last = *t.channel().recv();
    for (int i = 0; i < 1000; ++i) {
      const auto tick = *t.channel().recv();
      EXPECT_GT(tick, last);
      last = tick;
    }
  });
}

TEST_P(a_ticker, divides_its_ticks_among_those_who_wait) {
  here([] {
    weft::ticker t(1ms);
    constexpr int each = 5;
    std::vector<weft::time_point> received[4];
    {
      test::crew crew;
      for (int i = 0; i < 4; ++i) {
        crew.either(i, [&, i] {
          for (int k = 0; k < each; ++k) received[i].push_back(*t.channel().recv());
        });
      }
    }
    std::set<weft::time_point> all;
    for (const auto& some : received) all.insert(some.begin(), some.end());
    EXPECT_EQ(all.size(), 4u * each) << "each tick went to one of them";
  });
}

TEST_P(a_ticker, in_a_select_lets_the_other_cases_have_their_turn) {
  here([] {
    weft::ticker t(1ms);
    weft::chan<int> work;
    test::crew crew;
    crew.goroutine([&] {
      for (int i = 0; i < 1000; ++i) work.send(i);
      work.close();
    });
    int items = 0, ticks = 0;
    for (bool open = true; open || ticks < 3;) {
      weft::select(weft::on_recv(open ? work : weft::chan<int>(nullptr),
                                 [&](std::optional<int> i) { i ? void(++items) : void(open = false); }),
                   weft::on_recv(t.channel(), [&] { ++ticks; }));
    }
    EXPECT_EQ(items, 1000);
  });
}

TEST_P(a_ticker, moves_and_a_destroyed_one_stops) {
  here([] {
    weft::recv_chan<weft::time_point> channel = nullptr;
    {
      weft::ticker a(1ms);
      channel = a.channel();
      weft::ticker b(std::move(a));
      EXPECT_EQ(b.channel(), channel);
      EXPECT_FALSE(a.channel());
      EXPECT_THROW(a.reset(1ms), std::logic_error);
      a.stop();
      EXPECT_TRUE(channel.recv());
      a = std::move(b);
      EXPECT_TRUE(channel.recv());
    }
    EXPECT_EQ(weft::select(weft::on_recv(channel), weft::on_timeout(5ms)), 1u);
  });
}

TEST_P(a_ticker, that_nobody_waits_for_is_in_no_queue) {
  here([] {
    const auto before = weft::runtime::read_sched_stats().timers_started;
    std::vector<weft::ticker> tickers;
    for (int i = 0; i < 100; ++i) tickers.emplace_back(1ms);
    let_pass(steady::now() + 10ms);
    EXPECT_EQ(weft::runtime::read_sched_stats().timers_started, before);
    for (auto& t : tickers) EXPECT_FALSE(is_empty(t));
  });
}

// Go's TestTickerResetRace and TestTicker: stopped and reset from elsewhere while it is received from.
TEST_P(a_ticker, can_be_reset_and_stopped_by_others_while_it_is_received_from) {
  here([] {
    weft::ticker t(1ms);
    std::atomic<bool> over = false;
    test::crew crew;
    for (int i = 0; i < 2; ++i) {
      crew.either(i, [&] {
        for (int k = 0; k < 300; ++k) {
          k % 5 == 0 ? t.stop() : t.reset(std::chrono::microseconds(10 + k % 50));
          weft::yield();
        }
        t.reset(100us);
      });
    }
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(t.channel().recv());
    crew.wait();
    t.reset(1ms);
    EXPECT_TRUE(t.channel().recv());
  });
}

}  // namespace
