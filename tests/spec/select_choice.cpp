// select: which case is chosen, what it does, and what it leaves alone.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/build.h"
#include "support/chan_places.h"
#include "support/uniform.h"

namespace {

using namespace std::chrono_literals;

class select_anywhere : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, select_anywhere, test::all_places(), test::name_of_place);

using test::draws;

TEST_P(select_anywhere, does_the_one_case_that_is_ready) {
  here([] {
    weft::chan<int> empty(1);
    weft::chan<int> full(1);
    full.send(5);
    std::optional<int> got;
    EXPECT_EQ(weft::select(weft::on_recv(empty), weft::on_recv(full, [&](std::optional<int> v) { got = v; })), 1u);
    EXPECT_EQ(got, 5);
    EXPECT_EQ(weft::select(weft::on_send(empty, 6), weft::on_recv(full)), 0u);
    EXPECT_EQ(empty.recv(), 6);
  });
}

TEST_P(select_anywhere, returns_the_index_in_the_order_of_the_arguments) {
  here([] {
    weft::chan<int> never;
    weft::chan<int> ready(1);
    ready.send(1);
    EXPECT_EQ(weft::select(weft::on_recv(never), weft::on_recv(never), weft::on_recv(ready), weft::on_default()), 2u);
    EXPECT_EQ(weft::select(weft::on_recv(never), weft::on_default(), weft::on_recv(ready)), 1u);
    EXPECT_EQ(weft::select(weft::on_recv(never), weft::on_timeout(0s), weft::on_recv(ready)), 1u);
    EXPECT_EQ(weft::select(weft::on_recv(never), weft::on_timeout(1ms)), 1u);
  });
}

TEST_P(select_anywhere, chooses_uniformly_among_ready_receives) {
  here([] {
    std::vector<weft::chan<int>> ch;
    for (int i = 0; i < 4; ++i) ch.emplace_back(1);
    std::vector<int> count(4);
    for (int i = 0; i < draws; ++i) {
      for (const auto& c : ch) {
        if (c.size() == 0) c.send(0);
      }
      ++count[weft::select(weft::on_recv(ch[0]), weft::on_recv(ch[1]), weft::on_recv(ch[2]), weft::on_recv(ch[3]))];
    }
    test::expect_uniform(count);
  });
}

TEST_P(select_anywhere, chooses_uniformly_among_neighbours_too) {
  here([] {
    weft::chan<int> never;
    weft::chan<int> a(1), b(1);
    std::vector<int> count(2);
    for (int i = 0; i < draws; ++i) {
      if (a.size() == 0) a.send(0);
      if (b.size() == 0) b.send(0);
      const std::size_t won =
          weft::select(weft::on_recv(a), weft::on_recv(b), weft::on_recv(never), weft::on_recv(never));
      ASSERT_LT(won, 2u);
      ++count[won];
    }
    test::expect_uniform(count);
  });
}

TEST_P(select_anywhere, chooses_uniformly_between_sending_receiving_and_a_stop_that_was_requested) {
  here([] {
    weft::chan<int> in(1), out(1);
    std::stop_source stop;
    stop.request_stop();
    std::vector<int> count(3);
    for (int i = 0; i < draws; ++i) {
      if (in.size() == 0) in.send(0);
      if (out.size() == 1) out.recv();
      ++count[weft::select(weft::on_recv(in), weft::on_send(out, 1), weft::on_stop(stop.get_token()))];
    }
    test::expect_uniform(count);
  });
}

TEST_P(select_anywhere, chooses_uniformly_among_closed_channels) {
  here([] {
    weft::chan<int> a, b;
    a.close();
    b.close();
    std::vector<int> count(2);
    for (int i = 0; i < draws; ++i) ++count[weft::select(weft::on_recv(a), weft::on_recv(b))];
    test::expect_uniform(count);
  });
}

TEST_P(select_anywhere, chooses_uniformly_between_sending_0_and_1_to_the_same_channel) {
  here([] {
    weft::chan<int> ch(1);
    std::vector<int> count(2);
    for (int i = 0; i < draws; ++i) {
      const std::size_t won = weft::select(weft::on_send(ch, 0), weft::on_send(ch, 1));
      ASSERT_EQ(ch.recv(), static_cast<int>(won));
      ++count[won];
    }
    test::expect_uniform(count);
  });
}

TEST(select_fairness, senders_on_two_channels_both_get_through) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          weft::chan<int> a, b, done;
          for (const auto& ch : {a, b}) {
            weft::go([ch, done] {
              while (weft::select(weft::on_send(ch, 1), weft::on_recv(done)) == 0) {
              }
            });
          }
          // Not in equal shares: with one P, a pair that talks may keep the P to itself for a time slice.
          std::array<int, 2> count{};
          test::hang_limit limit(__FILE__, __LINE__);
          while (count[0] < 1000 || count[1] < 1000) {
            ++count[weft::select(weft::on_recv(a), weft::on_recv(b))];
            limit.check();
          }
          done.close();
          test::await([] { return weft::runtime::num_goroutine() <= 1; });
        },
        {.procs = procs});
  }
}

// ---- default, nil, closed ----

TEST_P(select_anywhere, default_runs_only_if_nothing_is_ready) {
  here([] {
    weft::chan<int> ch(1);
    int defaults = 0;
    const auto poll = [&] { return weft::select(weft::on_recv(ch), weft::on_default([&] { ++defaults; })); };
    EXPECT_EQ(poll(), 1u);
    EXPECT_EQ(defaults, 1);
    ch.send(1);
    EXPECT_EQ(poll(), 0u);
    EXPECT_EQ(poll(), 1u);
    ch.close();
    EXPECT_EQ(poll(), 0u);
    EXPECT_EQ(defaults, 2);
    EXPECT_EQ(weft::select(weft::on_default()), 0u);
  });
}

TEST_P(select_anywhere, default_does_not_run_while_a_value_wanders_between_the_channels) {
  here([] {
    // At every moment one of the two has a value. (There come to be more when both goroutines take one at once.)
    weft::chan<int> a(3 * draws), b(3 * draws);
    a.send(1);
    std::atomic<bool> stop = false;
    std::atomic<bool> stopped = false;
    weft::go([&] {
      int value = 1;
      while (!stop) {
        b.send(1);
        a.try_recv(value);
        a.send(1);
        b.try_recv(value);
        weft::yield();
      }
      stopped = true;
    });
    for (int i = 0; i < draws; ++i) {
      const std::size_t won =
          weft::select(weft::on_recv(a, [&](std::optional<int>) { a.send(1); }),
                       weft::on_recv(b, [&](std::optional<int>) { b.send(1); }), weft::on_default());
      ASSERT_NE(won, 2u);
      if (i % 16 == 0) weft::yield();
    }
    stop = true;
    test::await([&] { return stopped.load(); });
  });
}

TEST_P(select_anywhere, a_nil_channel_is_never_ready) {
  here([] {
    const weft::chan<int> nil = nullptr;
    weft::chan<int> ready(1);
    for (int i = 0; i < 100; ++i) {
      ready.send(i);
      EXPECT_EQ(weft::select(weft::on_recv(nil), weft::on_send(nil, 1), weft::on_recv(ready)), 2u);
      EXPECT_EQ(weft::select(weft::on_recv(nil), weft::on_send(nil, 1), weft::on_default()), 2u);
    }
    EXPECT_EQ(weft::select(weft::on_recv(nil), weft::on_timeout(1ms)), 1u);
  });
}

TEST(select_nothing, without_cases_or_with_nil_channels_only_blocks_for_ever) {
  weft::run(
      [] {
        int arrived = 0, passed = 0;
        weft::go([&] {
          ++arrived;
          weft::select();
          ++passed;
        });
        weft::go([&] {
          ++arrived;
          const weft::chan<int> nil = nullptr;
          weft::select(weft::on_recv(nil), weft::on_send(nil, 1), weft::on_stop(std::stop_token()));
          ++passed;
        });
        weft::go([&] {
          ++arrived;
          weft::selector().wait();
          ++passed;
        });
        test::let_others_run();
        EXPECT_EQ(arrived, 3);
        EXPECT_EQ(passed, 0);
      },
      {.procs = 1});
}

TEST_P(select_anywhere, a_closed_channel_gives_nothing_at_once) {
  here([] {
    weft::chan<std::string> ch(1);
    ch.send("last");
    ch.close();
    std::optional<std::string> got = "before";
    const auto keep = [&](std::optional<std::string> v) { got = std::move(v); };
    EXPECT_EQ(weft::select(weft::on_recv(ch, keep)), 0u);
    EXPECT_EQ(got, "last");
    EXPECT_EQ(weft::select(weft::on_recv(ch, keep)), 0u);
    EXPECT_EQ(got, std::nullopt);
  });
}

TEST_P(select_anywhere, a_send_on_a_closed_channel_is_an_error) {
  here([] {
    weft::chan<int> ch(1), never;
    ch.close();
    int handled = 0;
    try {
      weft::select(weft::on_recv(never), weft::on_send(ch, 1, [&] { ++handled; }));
      ADD_FAILURE() << "returned";
    } catch (const weft::channel_error& e) {
      EXPECT_STREQ(e.what(), "send on closed channel");
    }
    EXPECT_THROW(weft::select(weft::on_send(ch, 1), weft::on_default()), weft::channel_error);
    EXPECT_EQ(handled, 0);
  });
}

// ---- values ----

TEST_P(select_anywhere, a_value_is_moved_only_if_its_case_wins) {
  here([] {
    weft::chan<std::unique_ptr<int>> full(1), room(1);
    full.send(nullptr);
    auto loser = std::make_unique<int>(1);
    auto winner = std::make_unique<int>(2);
    EXPECT_EQ(weft::select(weft::on_send(full, std::move(loser)), weft::on_send(room, std::move(winner))), 1u);
    ASSERT_NE(loser, nullptr);
    EXPECT_EQ(*loser, 1);
    EXPECT_EQ(winner, nullptr);
    EXPECT_EQ(**room.recv(), 2);
    EXPECT_EQ(weft::select(weft::on_send(full, std::move(loser)), weft::on_default()), 1u);
    EXPECT_NE(loser, nullptr);
    EXPECT_EQ(weft::select(weft::on_send(full, std::move(loser)), weft::on_timeout(1ms)), 1u);
    EXPECT_NE(loser, nullptr);
  });
}

TEST_P(select_anywhere, an_lvalue_is_copied) {
  here([] {
    weft::chan<std::string> ch(2);
    std::string text = "stays";
    EXPECT_EQ(weft::select(weft::on_send(ch, text)), 0u);
    const std::string constant = "too";
    EXPECT_EQ(weft::select(weft::on_send(ch, constant)), 0u);
    EXPECT_EQ(text, "stays");
    EXPECT_EQ(ch.recv(), "stays");
    EXPECT_EQ(ch.recv(), "too");
  });
}

TEST_P(select_anywhere, a_value_may_be_anything_that_converts) {
  here([] {
    weft::chan<std::string> ch(2);
    EXPECT_EQ(weft::select(weft::on_send(ch, "literal")), 0u);
    EXPECT_EQ(weft::select(weft::on_send(ch, {'a', 'b'})), 0u);
    EXPECT_EQ(ch.recv(), "literal");
    EXPECT_EQ(ch.recv(), "ab");
  });
}

TEST_P(select_anywhere, receives_values_that_are_move_only_and_not_assignable) {
  struct strict {
    explicit strict(int n) : value(std::make_unique<int>(n)) {}
    strict(strict&&) noexcept = default;
    strict& operator=(strict&&) = delete;
    std::unique_ptr<int> value;
  };
  here([] {
    weft::chan<strict> ch, never;
    weft::go([ch] { ch.send(strict(9)); });
    int got = 0;
    EXPECT_EQ(weft::select(weft::on_recv(never), weft::on_recv(ch, [&](std::optional<strict> v) { got = *v->value; })),
              1u);
    EXPECT_EQ(got, 9);
  });
}

TEST_P(select_anywhere, takes_views_and_temporary_handles) {
  here([] {
    weft::chan<int> ch(2);
    const weft::send_chan<int> out = ch;
    const weft::recv_chan<int> in = ch;
    EXPECT_EQ(weft::select(weft::on_send(out, 1)), 0u);
    EXPECT_EQ(weft::select(weft::on_send(weft::send_chan<int>(ch), 2)), 0u);
    int sum = 0;
    const auto add = [&](std::optional<int> v) { sum += *v; };
    EXPECT_EQ(weft::select(weft::on_recv(in, add)), 0u);
    EXPECT_EQ(weft::select(weft::on_recv(weft::recv_chan<int>(ch), add)), 0u);
    EXPECT_EQ(sum, 3);
  });
}

TEST_P(select_anywhere, on_done_receives_from_whatever_done_returns) {
  struct context_like {
    weft::chan<int> ch;
    weft::recv_chan<int> done() const { return ch; }
  };
  here([] {
    context_like context;
    int handled = 0;
    EXPECT_EQ(weft::select(weft::on_done(context), weft::on_default()), 1u);
    weft::go([&] { context.ch.close(); });
    EXPECT_EQ(weft::select(weft::on_done(context, [&] { ++handled; })), 0u);
    EXPECT_EQ(handled, 1);
  });
}

TEST_P(select_anywhere, takes_a_bare_zero_for_no_time_at_all) {
  here([] {
    weft::chan<int> ch;
    int handled = 0;
    EXPECT_EQ(weft::select(weft::on_recv(ch), weft::on_timeout(0, [&] { ++handled; })), 1u);
    EXPECT_EQ(weft::select(weft::on_timeout(0), weft::on_recv(ch)), 0u);
    EXPECT_EQ(handled, 1);
  });
}

// 105 years: as nanoseconds they fit, as nanoseconds times three they do not.
TEST_P(select_anywhere, a_very_long_time_is_not_over_at_once) {
  here([] {
    const std::chrono::duration<std::int64_t, std::ratio<1, 3>> long_time(10'000'000'000);
    EXPECT_EQ(weft::select(weft::on_timeout(long_time), weft::on_timeout(std::chrono::milliseconds(1))), 1u);
  });
}

TEST_P(select_anywhere, on_done_gives_its_handler_nothing_whatever_that_would_take) {
  here([] {
    auto [context, cancel] = weft::with_cancel(weft::background());
    cancel();
    int arguments = -1;
    EXPECT_EQ(weft::select(weft::on_done(context, [&](auto... a) { arguments = (0 + ... + a); })), 0u);
    EXPECT_EQ(arguments, 0);
  });
}

// ---- handlers ----

TEST_P(select_anywhere, runs_the_handler_of_the_winner_and_no_other) {
  here([] {
    weft::chan<int> a(1), b;
    std::string ran;
    a.send(1);
    weft::select(weft::on_recv(a, [&](std::optional<int> v) { ran += "a" + std::to_string(*v); }),
                 weft::on_recv(b, [&](std::optional<int>) { ran += "b"; }), weft::on_timeout(1h, [&] { ran += "t"; }),
                 weft::on_default([&] { ran += "d"; }));
    EXPECT_EQ(ran, "a1");
    weft::select(weft::on_send(a, 2, [&] { ran += "s"; }), weft::on_default([&] { ran += "d"; }));
    EXPECT_EQ(ran, "a1s");
  });
}

TEST_P(select_anywhere, a_handler_may_ignore_the_value_or_be_any_callable) {
  here([] {
    weft::chan<int> ch(4);
    for (int i = 0; i < 4; ++i) ch.send(i);
    int runs = 0;
    weft::select(weft::on_recv(ch, [&] { ++runs; }));
    const std::function<void(std::optional<int>)> function = [&](std::optional<int> v) { runs += *v; };
    weft::select(weft::on_recv(ch, function));
    weft::select(weft::on_recv(ch, [&](auto v) { runs += *v; }));
    weft::select(
        weft::on_recv(ch, [&, owned = std::make_unique<int>(1)](const std::optional<int>& v) { runs += *v + *owned; }));
    EXPECT_EQ(runs, 1 + 1 + 2 + 3 + 1);
  });
}

TEST_P(select_anywhere, a_handler_may_use_the_same_channels) {
  here([] {
    weft::chan<int> ch(1), other;
    ch.send(1);
    int depth = 0;
    weft::select(weft::on_recv(ch, [&](std::optional<int>) {
      ch.send(2);
      EXPECT_EQ(weft::select(weft::on_recv(other), weft::on_recv(ch, [&](std::optional<int> v) { depth = *v; })), 1u);
      ch.close();
    }));
    EXPECT_EQ(depth, 2);
  });
}

TEST_P(select_anywhere, a_handler_may_throw) {
  here([] {
    weft::chan<std::string> ch(1);
    weft::chan<int> never;
    for (int i = 0; i < 10; ++i) {
      ch.send("value");
      EXPECT_THROW(weft::select(weft::on_recv(never),
                                weft::on_recv(ch, [](std::optional<std::string> v) { throw std::runtime_error(*v); })),
                   std::runtime_error);
      EXPECT_THROW(weft::select(weft::on_recv(never), weft::on_timeout(1us, [] { throw 1; })), int);
      EXPECT_THROW(weft::select(weft::on_recv(never), weft::on_default([] { throw 1; })), int);
      weft::go([ch] { ch.send("late"); });
      EXPECT_THROW(weft::select(weft::on_recv(never),
                                weft::on_recv(ch, [](std::optional<std::string> v) { throw std::runtime_error(*v); })),
                   std::runtime_error);
    }
    EXPECT_EQ(never.size(), 0u);
    EXPECT_FALSE(never.try_send(1));  // nobody stands in line any more
  });
}

TEST_P(select_anywhere, a_case_may_be_kept_and_used_again) {
  here([] {
    weft::chan<int> ch(3);
    int sum = 0;
    auto receive = weft::on_recv(ch, [&](std::optional<int> v) { sum += *v; });
    auto send = weft::on_send(ch, 4);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(weft::select(send), 0u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(weft::select(receive), 0u);
    EXPECT_EQ(sum, 12);
  });
}

TEST_P(select_anywhere, a_send_that_is_kept_has_its_value_and_sends_it_again) {
  here([] {
    const std::string text(60, 't');
    weft::chan<std::string> ch(2);
    auto kept = weft::on_send(ch, std::string(text));
    const std::string somebody_elses(60, 's');
    for (int i = 0; i < 2; ++i) EXPECT_EQ(weft::select(kept), 0u);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(ch.recv(), text);
    const auto make = [&] { return weft::on_send(ch, std::string(text)); };
    EXPECT_EQ(weft::select(make()), 0u);
    EXPECT_EQ(ch.recv(), text);
  });
}

TEST_P(select_anywhere, a_send_that_is_kept_and_cannot_be_copied_is_ready_once) {
  here([] {
    weft::chan<std::unique_ptr<int>> ch(2), full;
    auto kept = weft::on_send(ch, std::make_unique<int>(4));
    auto loses = weft::on_send(full, std::make_unique<int>(5));
    EXPECT_EQ(weft::select(loses, kept), 1u);
    EXPECT_EQ(weft::select(loses, kept, weft::on_default()), 2u);
    EXPECT_EQ(**ch.recv(), 4);
    weft::go([=] { weft::select(weft::on_recv(full, [=](auto v) { ch.send(std::move(*v)); })); });
    EXPECT_EQ(weft::select(loses), 0u);
    EXPECT_EQ(**ch.recv(), 5);
  });
}

struct ticket {
  explicit ticket(int n) : number(n) {}
  ticket(ticket&&) = default;
  ticket& operator=(ticket&&) = default;
  int number;
};
static_assert(std::is_trivially_copyable_v<ticket> && !std::is_copy_constructible_v<ticket>);

TEST_P(select_anywhere, a_value_of_bits_may_be_move_only) {
  here([] {
    weft::chan<ticket> ch(3);
    auto kept = weft::on_send(ch, ticket(1));
    EXPECT_EQ(weft::select(kept), 0u);
    EXPECT_EQ(weft::select(kept, weft::on_default()), 1u);
    weft::selector s;
    s.add(weft::on_send(ch, ticket(2)));
    EXPECT_EQ(s.wait(), 0u);
    s.add(weft::on_default());
    EXPECT_EQ(s.wait(), 1u);
    EXPECT_EQ(weft::select(weft::on_send(ch, ticket(3))), 0u);
    for (int i = 1; i <= 3; ++i) EXPECT_EQ(ch.recv()->number, i);
  });
}

struct never_assigned {
  explicit never_assigned(int v) : value(std::make_unique<int>(v)) {}
  never_assigned(never_assigned&&) noexcept = default;
  never_assigned& operator=(never_assigned&&) = delete;
  std::unique_ptr<int> value;
};

TEST_P(select_anywhere, a_send_that_loses_gives_its_rvalue_back_before_a_handler_sees_it) {
  here([] {
    weft::chan<std::string> strings;
    weft::chan<never_assigned> others;
    std::string text(60, 't');
    never_assigned other(7);
    const auto both_there = [&] {
      EXPECT_EQ(text, std::string(60, 't'));
      EXPECT_EQ(*other.value, 7);
    };
    EXPECT_EQ(weft::select(weft::on_send(strings, std::move(text)), weft::on_send(others, std::move(other)),
                           weft::on_timeout(1ms, both_there)),
              2u);
    both_there();
    strings.close();
    EXPECT_THROW(weft::select(weft::on_send(others, std::move(other)), weft::on_send(strings, std::move(text))),
                 weft::channel_error);
    both_there();
  });
}

TEST_P(select_anywhere, sends_large_objects_from_a_small_stack) {
  here([] {
    struct large {
      std::array<char, 60'000> bytes{};
    };
    weft::chan<large> ch(1), full;
    large first;
    first.bytes.back() = 'z';
    EXPECT_EQ(weft::select(weft::on_send(full, std::move(first)), weft::on_default()), 1u);
    EXPECT_EQ(weft::select(weft::on_send(ch, std::move(first))), 0u);
    bool same = false;
    weft::select(weft::on_recv(ch, [&](const std::optional<large>& v) { same = v->bytes.back() == 'z'; }));
    EXPECT_TRUE(same);
  });
}

template <class... Cases>
constexpr bool selectable = requires(Cases... c) {
  weft::select(c...);
};
static_assert(!selectable<int>);
static_assert(std::is_same_v<decltype(weft::select(weft::on_default())), std::size_t>);

}  // namespace
