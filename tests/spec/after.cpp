// after: a timer of which only the channel is kept. after_func: a timer that starts a goroutine.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
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

class after : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, after, test::everywhere(), test::name_of);

TEST_P(after, gives_a_time_once_and_not_too_early) {
  here([] {
    const auto before = steady::now();
    const weft::recv_chan<weft::time_point> c = weft::after(10ms);
    const auto value = c.recv();
    EXPECT_GE(*value, before + 10ms);
    EXPECT_GE(steady::now(), before + 10ms);
    weft::time_point out;
    EXPECT_EQ(c.try_recv(out), weft::recv_status::empty);
  });
}

TEST_P(after, ends_a_select) {
  here([] {
    weft::chan<int> never;
    EXPECT_EQ(weft::select(weft::on_recv(never), weft::on_recv(weft::after(1ms))), 1u);
    std::optional<weft::time_point> value;
    weft::select(weft::on_recv(never), weft::on_recv(weft::after(0ms), [&](auto v) { value = v; }));
    EXPECT_TRUE(value);
  });
}

TEST_P(after, may_be_forgotten) {
  here([] {
    const auto before = weft::runtime::read_sched_stats().timers_started;
    weft::chan<int> ready(1);
    for (int i = 0; i < 10'000; ++i) {
      ready.send(i);
      weft::select(weft::on_recv(ready), weft::on_recv(weft::after(1h)));
    }
    EXPECT_EQ(weft::runtime::read_sched_stats().timers_started, before);
  });
}

// Go's TestAfterQueuing: not the order of their making but that of their durations.
TEST_P(after, comes_in_the_order_of_durations) {
  here([] {
    constexpr auto slot_length = 20ms;
    const int slots[] = {5, 3, 6, 6, 6, 1, 1, 2, 7, 9, 4, 8, 0};
    std::vector<weft::recv_chan<weft::time_point>> channels;
    const auto began = steady::now();
    for (const int slot : slots) channels.push_back(weft::after(slot * slot_length));
    weft::selector all;
    std::vector<int> order;
    auto latest = 0ns;
    for (std::size_t i = 0; i < std::size(slots); ++i) {
      all.add(weft::on_recv(channels[i], [&, slot = slots[i]](std::optional<weft::time_point> v) {
        order.push_back(slot);
        EXPECT_GE(steady::now(), *v);
        latest = std::max<std::chrono::nanoseconds>(latest, steady::now() - (began + slot * slot_length));
      }));
    }
    for (std::size_t i = 0; i < std::size(slots); ++i) all.wait();
    EXPECT_EQ(order.size(), std::size(slots));
    // Of several that are due when the select looks, it takes any; and one that was made late is due late. On a machine that
    // was too busy, nothing can be said.
    if (latest < slot_length) {
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    }
  });
}

class after_func : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, after_func, test::everywhere(), test::name_of);

TEST_P(after_func, calls_the_function_once_in_a_goroutine_of_its_own) {
  here([] {
    std::atomic<int> calls = 0;
    std::atomic<std::uint64_t> id = 0;
    std::atomic<bool> early = false;
    const auto before = steady::now();
    weft::timer t = weft::after_func(5ms, [&] {
      early = steady::now() < before + 5ms;
      id = weft::goroutine_id();
      ++calls;
    });
    test::await([&] { return calls == 1; });
    EXPECT_FALSE(early);
    EXPECT_NE(id, 0u);
    EXPECT_NE(id, weft::goroutine_id());
    EXPECT_FALSE(t.stop());
    let_pass(steady::now() + 5ms);
    EXPECT_EQ(calls, 1);
  });
}

TEST_P(after_func, calls_the_function_although_the_handle_is_dropped) {
  here([] {
    std::atomic<bool> called = false;
    weft::after_func(1ms, [&] { called = true; });
    test::await([&] { return called.load(); });
  });
}

TEST_P(after_func, has_no_channel) {
  here([] {
    weft::timer t = weft::after_func(1h, [] {});
    EXPECT_FALSE(t.channel());
    EXPECT_TRUE(t.stop());
  });
}

TEST_P(after_func, that_is_stopped_in_time_is_not_called) {
  here([] {
    std::atomic<bool> called = false;
    weft::timer t = weft::after_func(20ms, [&] { called = true; });
    const bool stopped = t.stop();
    EXPECT_FALSE(t.stop());
    if (stopped) {
      let_pass(steady::now() + 25ms);
      EXPECT_FALSE(called);
    } else {  // it took more than 20 ms to come to the stop
      test::await([&] { return called.load(); });
    }
  });
}

TEST_P(after_func, can_be_reset_before_and_after_the_call) {
  here([] {
    std::atomic<int> calls = 0;
    weft::timer t = weft::after_func(1h, [&] { ++calls; });
    EXPECT_TRUE(t.reset(1ms));
    test::await([&] { return calls == 1; });
    EXPECT_FALSE(t.reset(1ms));
    test::await([&] { return calls == 2; });
    t.reset(1h);
    EXPECT_TRUE(t.stop());
  });
}

// Go's TestAfterFunc: a function that starts its own timer again.
TEST_P(after_func, can_be_reset_by_the_function_itself) {
  here([] {
    std::atomic<int> calls = 0;
    std::optional<weft::timer> t;
    weft::mutex ready;
    ready.lock();
    t.emplace(weft::after_func(0ms, [&] {
      { std::lock_guard guard(ready); }
      if (++calls < 10) t->reset(100us);
    }));
    ready.unlock();
    test::await([&] { return calls == 10; });
  });
}

TEST_P(after_func, may_park_and_overlap_with_the_next_call) {
  here([] {
    weft::chan<int> gate;
    std::atomic<int> inside = 0, left = 0;
    weft::timer t = weft::after_func(0ms, [&] {
      ++inside;
      gate.recv();
      ++left;
    });
    test::await([&] { return inside == 1; });
    t.reset(0ms);
    test::await([&] { return inside == 2; });
    gate.close();
    test::await([&] { return left == 2; });
  });
}

TEST_P(after_func, takes_functions_that_can_only_be_moved_and_destroys_them_in_the_end) {
  here([] {
    auto token = std::make_shared<int>(7);
    const std::weak_ptr<int> watch = token;
    std::atomic<int> seen = 0;
    {
      weft::timer t = weft::after_func(0ms, [&, own = std::make_unique<std::shared_ptr<int>>(std::move(token))] { seen = **own; });
      test::await([&] { return seen == 7; });
      EXPECT_FALSE(watch.expired()) << "the timer could be reset";
    }
    test::await([&] { return watch.expired(); });

    auto stopped = std::make_shared<int>(1);
    const std::weak_ptr<int> gone = stopped;
    {
      weft::timer t = weft::after_func(1h, [own = std::move(stopped)] {});
      EXPECT_TRUE(t.stop());
    }
    EXPECT_TRUE(gone.expired());
  });
}

TEST_P(after_func, of_a_moved_timer_is_called_all_the_same) {
  here([] {
    std::atomic<int> calls = 0;
    weft::timer a = weft::after_func(1ms, [&] { ++calls; });
    weft::timer b(std::move(a));
    EXPECT_FALSE(a.stop());
    EXPECT_THROW(a.reset(1ms), std::logic_error);
    b = weft::after_func(1ms, [&] { ++calls; });
    test::await([&] { return calls == 2; });
  });
}

TEST_P(after_func, with_nothing_or_less_is_called_at_once) {
  here([] {
    std::atomic<int> calls = 0;
    weft::after_func(0ms, [&] { ++calls; });
    weft::after_func(-1h, [&] { ++calls; });
    test::await([&] { return calls == 2; });
  });
}

TEST_P(after_func, of_many_calls_each_once) {
  here([] {
    constexpr int count = 2000;
    std::vector<std::atomic<int>> calls(count);
    std::atomic<int> total = 0;
    for (int i = 0; i < count; ++i) {
      weft::after_func(std::chrono::microseconds(i % 97 * 20), [&, i] {
        ++calls[i];
        ++total;
      });
    }
    test::await([&] { return total == count; });
    for (const auto& c : calls) EXPECT_EQ(c, 1);
  });
}

// Go's TestAfterStop and TestAfterStress in one: stopped or called, never both, never neither.
TEST_P(after_func, is_either_stopped_or_called) {
  here([] {
    for (int i = 0; i < 300; ++i) {
      std::atomic<int> calls = 0;
      weft::timer t = weft::after_func(std::chrono::microseconds(i % 40), [&] { ++calls; });
      if (i % 2 == 0) weft::yield();
      if (i % 3 == 0) let_pass(steady::now() + std::chrono::microseconds(i % 40));
      if (t.stop()) {
        EXPECT_EQ(calls, 0);
      } else {
        test::await([&] { return calls == 1; });
      }
    }
  });
}

TEST(after_func_at_the_end_of_run, leaves_nothing_behind) {
  weft::run([] { weft::after_func(1h, [owned = std::make_shared<int>(1)] {}); });
}

TEST(after_func_of_a_plain_thread, starts_the_runtime) {
  std::atomic<bool> called = false;
  weft::after_func(1ms, [&] { called = true; });
  test::await([&] { return called.load(); });
  weft::shutdown();
}

}  // namespace
