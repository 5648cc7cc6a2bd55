// select that waits: what wakes it, that one case and one only goes through, and what is left behind.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <array>
#include <atomic>
#include <cmath>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/build.h"
#include "support/chan_places.h"

namespace {

using namespace std::chrono_literals;

class waiting_select : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, waiting_select, test::all_places(), test::name_of_place);

TEST_P(waiting_select, is_woken_by_a_sender) {
  here([] {
    weft::chan<int> a, b;
    weft::go([b] { b.send(3); });
    int got = 0;
    EXPECT_EQ(weft::select(weft::on_recv(a), weft::on_recv(b, [&](std::optional<int> v) { got = *v; })), 1u);
    EXPECT_EQ(got, 3);
    EXPECT_FALSE(a.try_send(1));
    EXPECT_FALSE(b.try_send(1));
  });
}

TEST_P(waiting_select, is_woken_by_a_receiver) {
  here([] {
    weft::chan<std::string> a, b(1);
    b.send("full");
    weft::chan<std::string> result(1);
    weft::go([=] { result.send(*a.recv()); });
    EXPECT_EQ(weft::select(weft::on_send(b, std::string("to b")), weft::on_send(a, std::string("to a"))), 1u);
    EXPECT_EQ(result.recv(), "to a");
    EXPECT_EQ(b.size(), 1u);
  });
}

TEST_P(waiting_select, is_woken_by_close) {
  here([] {
    weft::chan<int> a, b;
    weft::go([b] { b.close(); });
    std::optional<int> got = 1;
    EXPECT_EQ(weft::select(weft::on_recv(a), weft::on_recv(b, [&](std::optional<int> v) { got = v; })), 1u);
    EXPECT_EQ(got, std::nullopt);
  });
}

TEST_P(waiting_select, that_wants_to_send_fails_when_the_channel_is_closed) {
  here([] {
    weft::chan<std::unique_ptr<int>> a, b;
    weft::go([b] { b.close(); });
    auto value = std::make_unique<int>(1);
    EXPECT_THROW(weft::select(weft::on_recv(a), weft::on_send(b, std::move(value))), weft::channel_error);
    EXPECT_NE(value, nullptr);
    EXPECT_FALSE(a.try_send(nullptr));
  });
}

TEST_P(waiting_select, may_wait_on_the_same_channel_several_times) {
  here([] {
    weft::chan<int> ch, result(1);
    weft::go([=] {
      result.send(static_cast<int>(
          weft::select(weft::on_recv(ch), weft::on_recv(ch), weft::on_send(ch, 1), weft::on_recv(ch))));
    });
    test::await([&] { return ch.try_send(5); });
    EXPECT_NE(result.recv(), 2);
    EXPECT_FALSE(ch.try_send(6));
    weft::go([=] {
      result.send(static_cast<int>(weft::select(weft::on_recv(ch), weft::on_send(ch, 9), weft::on_recv(ch))));
    });
    int got = 0;
    test::await([&] { return ch.try_recv(got) == weft::recv_status::ok; });
    EXPECT_EQ(got, 9);
    EXPECT_EQ(result.recv(), 1);
    weft::go([=] { result.send(static_cast<int>(weft::select(weft::on_recv(ch), weft::on_recv(ch)))); });
    ch.close();
    EXPECT_LT(*result.recv(), 2);
  });
}

TEST(select_alone, does_not_meet_itself) {
  weft::run(
      [] {
        weft::chan<int> ch;
        EXPECT_EQ(weft::select(weft::on_recv(ch), weft::on_send(ch, 1), weft::on_default()), 2u);
        EXPECT_EQ(weft::select(weft::on_recv(ch), weft::on_send(ch, 1), weft::on_timeout(1ms)), 2u);
      },
      {.procs = 2});
}

// ---- timeouts ----

TEST_P(waiting_select, times_out) {
  here([] {
    weft::chan<int> ch;
    for (const auto wait : {1ms, 10ms}) {
      bool ran = false;
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(weft::select(weft::on_recv(ch), weft::on_timeout(wait, [&] { ran = true; })), 1u);
      EXPECT_GE(std::chrono::steady_clock::now() - begin, wait);
      EXPECT_TRUE(ran);
    }
    EXPECT_FALSE(ch.try_send(1));
    EXPECT_EQ(weft::select(weft::on_timeout(1ms)), 0u);
    EXPECT_EQ(weft::select(weft::on_timeout(1h), weft::on_timeout(1ms), weft::on_timeout(2h)), 1u);
  });
}

TEST_P(waiting_select, with_a_timeout_of_0_or_less_does_not_wait_but_looks) {
  here([] {
    weft::chan<int> ch(1);
    EXPECT_EQ(weft::select(weft::on_recv(ch), weft::on_timeout(0s)), 1u);
    EXPECT_EQ(weft::select(weft::on_recv(ch), weft::on_timeout(-1h)), 1u);
    EXPECT_EQ(weft::select(weft::on_timeout(0s), weft::on_default()), 1u);
    for (int i = 0; i < 100; ++i) {
      ch.send(1);
      EXPECT_EQ(weft::select(weft::on_timeout(0s), weft::on_recv(ch)), 1u);
    }
  });
}

TEST_P(waiting_select, with_the_longest_timeout_there_is_does_not_time_out) {
  here([] {
    weft::chan<int> ch;
    weft::go([ch] {
      for (int i = 0; i < 100; ++i) weft::yield();
      ch.send(1);
    });
    EXPECT_EQ(weft::select(weft::on_timeout(std::chrono::hours::max()),
                           weft::on_timeout(std::chrono::nanoseconds::max()), weft::on_recv(ch)),
              2u);
  });
}

TEST_P(waiting_select, wins_or_times_out_but_not_both) {
  static constexpr int rounds = test::scaled(3000, 500, 500);
  here([] {
    int timeouts = 0;
    for (int i = 0; i < rounds; ++i) {
      weft::chan<int> ch, result(1);
      weft::go([=] {
        for (int k = 0; k < i % 13; ++k) weft::yield();
        // Whether it was received is known to the sender as well.
        result.send(weft::select(weft::on_send(ch, i), weft::on_timeout(std::chrono::microseconds(i % 29))) == 0 ? 1
                                                                                                                 : 0);
      });
      int received = 0;
      const std::size_t won = weft::select(weft::on_recv(ch, [&](std::optional<int> v) { received = *v == i; }),
                                           weft::on_timeout(std::chrono::microseconds(i % 31)));
      ASSERT_EQ(received, won == 0 ? 1 : 0);
      ASSERT_EQ(result.recv(), received);
      timeouts += won == 1;
    }
    EXPECT_GT(timeouts, 0);
  });
}

// ---- stop tokens ----

TEST_P(waiting_select, is_woken_by_a_stop_request) {
  here([] {
    weft::chan<int> ch;
    std::stop_source stop;
    weft::go([stop]() mutable { stop.request_stop(); });
    bool ran = false;
    EXPECT_EQ(weft::select(weft::on_recv(ch), weft::on_stop(stop.get_token(), [&] { ran = true; })), 1u);
    EXPECT_TRUE(ran);
    EXPECT_FALSE(ch.try_send(1));
    EXPECT_EQ(weft::select(weft::on_stop(stop.get_token())), 0u);
  });
}

TEST_P(waiting_select, ignores_a_token_that_can_never_stop) {
  here([] {
    weft::chan<int> ch(1);
    ch.send(1);
    EXPECT_EQ(weft::select(weft::on_stop(std::stop_token()), weft::on_recv(ch)), 1u);
    EXPECT_EQ(weft::select(weft::on_stop(std::stop_token()), weft::on_timeout(1ms)), 1u);
    std::stop_source stop;
    EXPECT_EQ(weft::select(weft::on_stop(stop.get_token()), weft::on_timeout(1ms)), 1u);
    EXPECT_EQ(weft::select(weft::on_stop(stop.get_token()), weft::on_default()), 1u);
  });
}

TEST_P(waiting_select, may_race_with_stop_requests_from_a_thread) {
  static constexpr int rounds = test::scaled(1000, 200, 200);
  here([] {
    weft::chan<std::stop_source> requests(1);
    std::thread stopper([&] {
      for (std::stop_source& s : requests) s.request_stop();
    });
    for (int i = 0; i < rounds; ++i) {
      std::stop_source stop;
      weft::chan<int> ch;
      requests.send(stop);
      std::atomic<int> sent = -1;
      weft::go([&, ch] {
        for (int k = 0; k < i % 7; ++k) weft::yield();
        sent = ch.try_send(1);
      });
      int received = 0;
      const std::size_t won =
          weft::select(weft::on_recv(ch, [&](std::optional<int>) { received = 1; }), weft::on_stop(stop.get_token()),
                       weft::on_stop(stop.get_token()), weft::on_timeout(1h));
      ASSERT_EQ(received, won == 0 ? 1 : 0);
      test::await([&] { return sent != -1; });
      ASSERT_EQ(sent, received);
    }
    requests.close();
    stopper.join();
  });
}

// ---- two and more selects facing each other ----

TEST_P(waiting_select, meets_another_one_that_wants_the_opposite) {
  static constexpr int rounds = test::scaled(5000, 800, 800);
  here([] {
    weft::chan<int> a, b;
    weft::chan<int> total(1);
    weft::go([=] {
      int sum = 0;
      for (int i = 0; i < rounds; ++i) {
        weft::select(weft::on_send(a, 1, [&] { sum += 1; }),
                     weft::on_recv(b, [&](std::optional<int> v) { sum += 1000 * *v; }));
      }
      total.send(sum);
    });
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
      weft::select(weft::on_recv(a, [&](std::optional<int> v) { sum += *v; }),
                   weft::on_send(b, 1, [&] { sum += 1000; }));
    }
    EXPECT_EQ(total.recv(), sum);  // what one sent on a channel, the other received there
  });
}

TEST_P(waiting_select, many_of_them_in_a_circle_never_lock_each_other_out) {
  static constexpr int n = 6, rounds = test::scaled(2000, 300, 300);
  here([] {
    std::vector<weft::chan<int>> ring;
    for (int i = 0; i < n; ++i) ring.emplace_back();
    std::atomic<int> sent = 0, received = 0, left = n;
    weft::chan<int> stop;
    for (int i = 0; i < n; ++i) {
      weft::go([&, i] {
        const auto& in = ring[static_cast<std::size_t>(i)];
        const auto& out = ring[static_cast<std::size_t>((i + 1) % n)];
        for (bool on = true; on;) {
          weft::select(weft::on_recv(in, [&](std::optional<int>) { ++received; }),
                       weft::on_send(out, i,
                                     [&] {
                                       if (++sent == rounds) stop.close();
                                       if (sent % 8 == 0) weft::yield();
                                     }),
                       weft::on_recv(stop, [&](std::optional<int>) { on = false; }));
        }
        --left;
      });
    }
    test::await([&] { return left == 0; });
    EXPECT_EQ(sent, received);
    EXPECT_GE(sent, rounds);
  });
}

TEST_P(waiting_select, goroutines_and_threads_meet_in_selects) {
  static constexpr int rounds = test::scaled(1000, 200, 200);
  here([] {
    weft::chan<int> a, b;
    long sum = 0, expected = 0;
    std::thread outsider([=] {
      for (int i = 0; i < rounds; ++i) weft::select(weft::on_send(a, i), weft::on_send(b, i), weft::on_timeout(1h));
    });
    weft::go([=] {
      for (int i = 0; i < rounds; ++i) weft::select(weft::on_send(b, i), weft::on_send(a, i));
    });
    const auto add = [&](std::optional<int> v) { sum += *v; };
    for (int i = 0; i < 2 * rounds; ++i)
      weft::select(weft::on_recv(a, add), weft::on_recv(b, add), weft::on_timeout(1h));
    for (int i = 0; i < rounds; ++i) expected += 2 * i;
    EXPECT_EQ(sum, expected);
    outsider.join();
  });
}

TEST_P(waiting_select, loses_no_value_to_a_case_that_did_not_win) {
  static constexpr int values = test::scaled(5000, 800, 800);
  here([] {
    // Two receivers select over both channels; every value of every sender arrives exactly once.
    weft::chan<int> a, b(2), quit;
    std::atomic<std::int64_t> sum = 0;
    std::atomic<int> count = 0, left = 2;
    for (const auto& ch : {a, b}) {
      weft::go([ch] {
        for (int i = 1; i <= values; ++i) ch.send(i);
      });
    }
    for (int r = 0; r < 2; ++r) {
      weft::go([&] {
        const auto add = [&](std::optional<int> v) {
          sum += *v;
          if (++count == 2 * values) quit.close();
        };
        while (weft::select(weft::on_recv(a, add), weft::on_recv(b, add), weft::on_recv(quit)) != 2) {
        }
        --left;
      });
    }
    test::await([&] { return left == 0; });
    EXPECT_EQ(sum, std::int64_t{values} * (values + 1));
  });
}

TEST_P(waiting_select, may_destroy_its_channels_as_soon_as_it_has_returned) {
  static constexpr int rounds = test::scaled(2000, 300, 300);
  here([] {
    for (int i = 0; i < rounds; ++i) {
      auto a = std::make_unique<weft::chan<int>>();
      auto b = std::make_unique<weft::chan<int>>();
      weft::go([c = i % 2 == 0 ? a.get() : b.get()] { c->send(1); });
      ASSERT_EQ(weft::select(weft::on_recv(*a), weft::on_recv(*b)), static_cast<std::size_t>(i % 2));
    }
  });
}

// 8 sigma and more: no healthy run comes near.
TEST_P(waiting_select, chooses_uniformly_among_cases_on_the_same_channel) {
  static constexpr int rounds = test::scaled(3000, 1000, 1000);
  here([] {
    const weft::chan<int> bits;
    weft::go([bits] {
      for (int i = 0; i < rounds; ++i) weft::select(weft::on_send(bits, 0), weft::on_send(bits, 1));
    });
    int ones = 0;
    for (int i = 0; i < rounds; ++i) ones += *bits.recv();
    EXPECT_NEAR(ones, rounds / 2, 4 * std::sqrt(rounds));

    std::array<int, 4> won = {};
    const weft::chan<int> other;
    weft::go([bits] {
      for (int i = 0; i < rounds; ++i) bits.send(i);
    });
    for (int i = 0; i < rounds; ++i) {
      ++won[weft::select(weft::on_recv(bits), weft::on_recv(other), weft::on_recv(bits), weft::on_recv(bits))];
    }
    EXPECT_EQ(won[1], 0);
    for (const std::size_t k : {0, 2, 3}) EXPECT_NEAR(won[k], rounds / 3, 4 * std::sqrt(rounds));
  });
}

}  // namespace
