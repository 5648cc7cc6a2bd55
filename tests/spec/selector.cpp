// selector: a select whose cases are known only at run time.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/build.h"
#include "support/chan_places.h"
#include "support/uniform.h"

namespace {

using namespace std::chrono_literals;

class selector_anywhere : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, selector_anywhere, test::all_places(), test::name_of_place);

TEST_P(selector_anywhere, does_what_select_does) {
  here([] {
    weft::chan<int> a(1), b(1), never;
    std::string ran;
    weft::selector s;
    EXPECT_EQ(s.add(weft::on_recv(never)), 0u);
    EXPECT_EQ(s.add(weft::on_recv(a, [&](std::optional<int> v) { ran += "a" + std::to_string(*v); })), 1u);
    EXPECT_EQ(s.add(weft::on_send(b, 7, [&] { ran += "b"; })), 2u);
    EXPECT_EQ(s.add(weft::on_default([&] { ran += "d"; })), 3u);
    EXPECT_EQ(s.wait(), 2u);
    EXPECT_EQ(s.wait(), 3u);
    a.send(1);
    EXPECT_EQ(s.wait(), 1u);
    EXPECT_EQ(b.recv(), 7);
    EXPECT_EQ(s.wait(), 2u);
    EXPECT_EQ(b.recv(), 7);
    EXPECT_EQ(ran, "bda1b");
  });
}

TEST_P(selector_anywhere, takes_one_default) {
  here([] {
    weft::selector s;
    s.add(weft::on_default());
    EXPECT_THROW(s.add(weft::on_default([] {})), std::logic_error);
    EXPECT_EQ(s.wait(), 0u);
  });
}

TEST_P(selector_anywhere, keeps_its_channels_handlers_and_values) {
  here([] {
    weft::recv_chan<std::string> out;
    weft::selector s;
    int calls = 0;
    {
      weft::chan<std::string> ch(2);
      out = ch;
      std::string value(100, 'x');
      const auto handler = [&calls] { ++calls; };
      s.add(weft::on_send(ch, std::move(value), handler));
    }
    s.wait();
    s.wait();
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(out.recv(), std::string(100, 'x'));
    EXPECT_EQ(out.recv(), std::string(100, 'x'));  // sent again
  });
}

TEST_P(selector_anywhere, keeps_the_handler_of_a_context) {
  here([] {
    auto [context, cancel] = weft::with_cancel(weft::background());
    const auto heard = std::make_shared<std::string>();
    weft::selector s;
    {
      const auto handler = [heard, text = std::string(60, 'h')] { *heard = text; };
      s.add(weft::on_done(context, handler));
    }
    cancel();
    EXPECT_EQ(s.wait(), 0u);
    EXPECT_EQ(*heard, std::string(60, 'h'));
  });
}

TEST_P(selector_anywhere, sends_a_move_only_value_once) {
  here([] {
    weft::chan<std::unique_ptr<int>> ch(2);
    weft::selector s;
    s.add(weft::on_send(ch, std::make_unique<int>(3)));
    s.add(weft::on_timeout(0s));
    EXPECT_EQ(s.wait(), 0u);
    EXPECT_EQ(s.wait(), 1u);
    EXPECT_EQ(**ch.recv(), 3);
    EXPECT_EQ(ch.size(), 0u);
  });
}

TEST_P(selector_anywhere, may_have_thousands_of_cases) {
  static constexpr int n = test::scaled(3000, 2000, 1000);
  here([] {
    std::vector<weft::chan<int>> all;
    weft::selector s;
    int last = -1;
    for (int i = 0; i < n; ++i) {
      all.emplace_back();
      s.add(weft::on_recv(all.back(), [&last](std::optional<int> v) { last = *v; }));
    }
    for (int round = 0; round < 20; ++round) {
      const int i = (round * 1237) % n;
      weft::go([ch = all[static_cast<std::size_t>(i)], i] { ch.send(i); });
      EXPECT_EQ(s.wait(), static_cast<std::size_t>(i));
      EXPECT_EQ(last, i);
    }
    for (const auto& ch : all) ASSERT_FALSE(ch.try_send(1));  // nobody stands in line any more
  });
}

TEST_P(selector_anywhere, is_uniform_too) {
  here([] {
    std::vector<weft::chan<int>> ch;
    weft::selector s;
    for (int i = 0; i < 20; ++i) {
      ch.emplace_back(1);
      s.add(weft::on_recv(ch.back()));
    }
    std::vector<int> count(20);
    for (int i = 0; i < test::draws; ++i) {
      for (const auto& c : ch) {
        if (c.size() == 0) c.send(0);
      }
      ++count[s.wait()];
    }
    test::expect_uniform(count);
  });
}

TEST_P(selector_anywhere, may_grow_between_waits_and_in_a_handler) {
  here([] {
    weft::chan<int> ch(1);
    weft::selector s;
    s.add(weft::on_recv(ch, [&](std::optional<int>) {
      for (int i = 0; i < 100; ++i) s.add(weft::on_recv(ch));
    }));
    ch.send(1);
    EXPECT_EQ(s.wait(), 0u);
    EXPECT_EQ(s.size(), 101u);
    ch.send(1);
    EXPECT_LT(s.wait(), 101u);
  });
}

}  // namespace
