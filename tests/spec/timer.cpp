// timer: one time on its channel. What is true of goroutines is true of plain threads.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/anywhere.h"

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

static_assert(std::is_move_constructible_v<weft::timer> && std::is_move_assignable_v<weft::timer>);
static_assert(!std::is_copy_constructible_v<weft::timer> && !std::is_default_constructible_v<weft::timer>);
static_assert(!std::is_convertible_v<std::chrono::nanoseconds, weft::timer>);
static_assert(std::is_same_v<decltype(std::declval<weft::timer&>().channel()), weft::recv_chan<weft::time_point>>);

// Until the time has come, by the clock that timers follow.
void let_pass(steady::time_point t) {
  test::await([&] { return steady::now() >= t; });
}

bool is_empty(const weft::timer& t) {
  weft::time_point out;
  return t.channel().try_recv(out) == weft::recv_status::empty;
}

class a_timer : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, a_timer, test::everywhere(), test::name_of);

TEST_P(a_timer, gives_the_time_at_which_it_was_due_and_not_before) {
  here([] {
    const auto before = steady::now();
    weft::timer t(20ms);
    const auto after = steady::now();
    const auto value = t.channel().recv();
    ASSERT_TRUE(value);
    EXPECT_GE(*value, before + 20ms);
    EXPECT_LE(*value, after + 20ms);
    EXPECT_GE(steady::now(), *value);
  });
}

TEST_P(a_timer, gives_one_value) {
  here([] {
    weft::timer t(1ms);
    EXPECT_TRUE(t.channel().recv());
    let_pass(steady::now() + 5ms);
    EXPECT_TRUE(is_empty(t));
  });
}

TEST_P(a_timer, of_no_duration_or_a_negative_one_has_expired_at_once) {
  here([] {
    for (const auto d : {0ns, -1ns, -1'000'000'000ns, std::chrono::nanoseconds::min()}) {
      weft::timer t(d);
      weft::time_point out;
      EXPECT_EQ(t.channel().try_recv(out), weft::recv_status::ok);
      t.reset(d);
      EXPECT_TRUE(t.channel().recv());
    }
  });
}

TEST_P(a_timer, of_an_immense_duration_does_not_wrap_around) {
  here([] {
    weft::timer hours(std::chrono::hours::max());
    weft::timer nanoseconds(std::chrono::nanoseconds::max());
    weft::timer fractions(std::chrono::duration<double>(std::numeric_limits<double>::infinity()));
    for (weft::timer* t : {&hours, &nanoseconds, &fractions}) {
      EXPECT_TRUE(is_empty(*t));
      EXPECT_EQ(weft::select(weft::on_recv(t->channel()), weft::on_timeout(1ms)), 1u);
      EXPECT_TRUE(t->reset(std::chrono::hours::max()));
      EXPECT_TRUE(t->stop());
    }
  });
}

TEST_P(a_timer, takes_durations_of_any_unit) {
  here([] {
    EXPECT_TRUE(weft::timer(std::chrono::duration<float, std::milli>(1.5f)).channel().recv());
    EXPECT_TRUE(weft::timer(std::chrono::duration<int, std::micro>(1)).channel().recv());
    EXPECT_TRUE(weft::timer(weft::duration(1)).channel().recv());
  });
}

TEST_P(a_timer, that_is_stopped_in_time_gives_nothing) {
  here([] {
    weft::timer t(5ms);
    EXPECT_TRUE(t.stop());
    let_pass(steady::now() + 10ms);
    EXPECT_TRUE(is_empty(t));
    EXPECT_EQ(weft::select(weft::on_recv(t.channel()), weft::on_timeout(5ms)), 1u);
  });
}

TEST_P(a_timer, can_be_stopped_once) {
  here([] {
    weft::timer t(1h);
    EXPECT_TRUE(t.stop());
    EXPECT_FALSE(t.stop());
  });
}

TEST_P(a_timer, that_has_expired_unreceived_is_still_stopped_and_its_value_is_gone) {
  here([] {
    weft::timer t(1ms);
    let_pass(steady::now() + 5ms);
    EXPECT_TRUE(t.stop());
    EXPECT_TRUE(is_empty(t));
    EXPECT_FALSE(t.stop());
  });
}

TEST_P(a_timer, whose_value_was_received_is_not_active_any_more) {
  here([] {
    weft::timer waited_for(1ms);
    waited_for.channel().recv();
    EXPECT_FALSE(waited_for.stop());
    EXPECT_FALSE(waited_for.reset(1h));

    weft::timer looked_at(0ms);
    weft::time_point out;
    EXPECT_EQ(looked_at.channel().try_recv(out), weft::recv_status::ok);
    EXPECT_FALSE(looked_at.stop());
  });
}

TEST_P(a_timer, that_is_reset_expires_after_the_new_duration) {
  here([] {
    weft::timer t(1h);
    const auto before = steady::now();
    EXPECT_TRUE(t.reset(10ms));
    const auto value = t.channel().recv();
    EXPECT_GE(*value, before + 10ms);
    EXPECT_FALSE(t.reset(1ms)) << "it was received";
    EXPECT_TRUE(t.channel().recv());
  });
}

TEST_P(a_timer, that_expired_unreceived_and_is_reset_gives_only_the_new_value) {
  here([] {
    weft::timer t(1ms);
    let_pass(steady::now() + 5ms);
    const auto before = steady::now();
    EXPECT_TRUE(t.reset(20ms));
    EXPECT_GE(*t.channel().recv(), before + 20ms);
    EXPECT_TRUE(is_empty(t));
  });
}

TEST_P(a_timer, that_was_stopped_starts_again_when_it_is_reset) {
  here([] {
    weft::timer t(1h);
    t.stop();
    EXPECT_FALSE(t.reset(1ms));
    EXPECT_TRUE(t.channel().recv());
  });
}

TEST_P(a_timer, can_be_reset_over_and_over_before_it_expires) {
  here([] {
    weft::timer t(1h);
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(t.reset(1h + std::chrono::milliseconds(i % 7)));
    EXPECT_TRUE(t.reset(1ms));
    EXPECT_TRUE(t.channel().recv());
  });
}

TEST_P(a_timer, that_is_reset_while_somebody_waits_serves_him_at_the_new_time) {
  here([] {
    for (const bool earlier : {true, false}) {
      weft::timer t(earlier ? 1h : std::chrono::hours(1) * 2);
      std::optional<weft::time_point> received;
      test::crew crew;
      const auto parks = test::parks();
      crew.goroutine([&] { received = t.channel().recv(); });
      test::await_parks(parks + 1);
      if (!earlier) t.stop();
      const auto before = steady::now();
      EXPECT_EQ(t.reset(5ms), earlier);
      crew.wait();
      EXPECT_GE(*received, before + 5ms);
    }
  });
}

TEST_P(a_timer, that_is_stopped_while_somebody_waits_leaves_him_waiting) {
  here([] {
    weft::timer t(1h);
    std::atomic<bool> received = false;
    test::crew crew;
    const auto parks = test::parks();
    crew.goroutine([&] {
      t.channel().recv();
      received = true;
    });
    test::await_parks(parks + 1);
    EXPECT_TRUE(t.reset(20ms));
    if (t.stop()) {
      let_pass(steady::now() + 30ms);
      EXPECT_FALSE(received);
    }
    t.reset(0ms);
    crew.wait();
  });
}

TEST_P(a_timer, serves_one_of_several_who_wait_for_it) {
  here([] {
    weft::timer t(5ms);
    std::atomic<int> received = 0;
    test::crew crew;
    const auto parks = test::parks();
    for (int i = 0; i < 4; ++i) {
      crew.goroutine([&] {
        t.channel().recv();
        ++received;
      });
    }
    test::await([&] { return received == 1; });
    test::await_parks(parks + 3);
    let_pass(steady::now() + 5ms);
    EXPECT_EQ(received, 1);
    for (int i = 2; i <= 4; ++i) {
      EXPECT_FALSE(t.reset(1ms));
      test::await([&] { return received == i; });
    }
  });
}

TEST_P(a_timer, can_be_one_case_of_a_select) {
  here([] {
    weft::chan<int> never;
    weft::timer t(2ms);
    EXPECT_EQ(weft::select(weft::on_recv(never), weft::on_recv(t.channel())), 1u);
    EXPECT_FALSE(t.stop());

    t.reset(1h);
    weft::chan<int> ready(1);
    ready.send(1);
    EXPECT_EQ(weft::select(weft::on_recv(t.channel()), weft::on_recv(ready)), 1u);
    EXPECT_TRUE(t.stop());
  });
}

TEST_P(a_timer, that_has_expired_is_chosen_as_often_as_any_other_ready_case) {
  here([] {
    int timers = 0;
    constexpr int rounds = 400;
    weft::chan<int> ready(1);
    ready.send(0);
    weft::timer t(0ms);
    for (int i = 0; i < rounds; ++i) {
      if (weft::select(weft::on_recv(t.channel()), weft::on_recv(ready)) == 0) {
        ++timers;
        t.reset(0ms);
      } else {
        ready.send(i);
      }
    }
    EXPECT_GT(timers, rounds / 4);
    EXPECT_LT(timers, rounds * 3 / 4);
  });
}

TEST_P(a_timer, is_not_ready_before_its_time_so_a_default_runs) {
  here([] {
    weft::timer t(1h);
    EXPECT_EQ(weft::select(weft::on_recv(t.channel()), weft::on_default()), 1u);
    t.reset(0ms);
    EXPECT_EQ(weft::select(weft::on_recv(t.channel()), weft::on_default()), 0u);
  });
}

TEST_P(a_timer, whose_select_chose_another_case_keeps_its_value) {
  here([] {
    weft::timer t(1h);
    weft::chan<int> other;
    test::crew crew;
    crew.goroutine([&] { other.send(1); });
    EXPECT_EQ(weft::select(weft::on_recv(t.channel()), weft::on_recv(other)), 1u);
    EXPECT_TRUE(t.reset(0ms));

    weft::chan<int> ready(1);
    for (bool kept = false; !kept;) {
      ready.try_send(1);
      if (weft::select(weft::on_recv(t.channel()), weft::on_recv(ready)) == 1) {
        EXPECT_TRUE(t.channel().recv());
        kept = true;
      } else {
        t.reset(0ms);
      }
    }
  });
}

TEST_P(a_timer, is_waited_for_by_the_cases_of_one_select_twice) {
  here([] {
    weft::timer t(2ms);
    EXPECT_LT(weft::select(weft::on_recv(t.channel()), weft::on_recv(t.channel())), 2u);
    EXPECT_FALSE(t.stop());
  });
}

TEST_P(a_timer, in_a_selector_can_be_waited_for_again_after_a_reset) {
  here([] {
    weft::timer t(1ms);
    weft::selector s;
    s.add(weft::on_recv(t.channel()));
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(s.wait(), 0u);
      t.reset(std::chrono::milliseconds(i));
    }
  });
}

TEST_P(a_timer, moves_and_its_channel_with_it) {
  here([] {
    weft::timer a(1ms);
    const auto channel = a.channel();
    weft::timer b(std::move(a));
    EXPECT_EQ(b.channel(), channel);
    EXPECT_TRUE(channel.recv());
    weft::timer c(1h);
    const auto dropped = c.channel();
    c = std::move(b);
    EXPECT_EQ(c.channel(), channel);
    c.reset(1ms);
    EXPECT_TRUE(channel.recv());
  });
}

TEST_P(a_timer, that_was_moved_from_does_nothing_and_cannot_be_reset) {
  here([] {
    weft::timer a(1ms);
    const weft::timer b(std::move(a));
    EXPECT_FALSE(a.stop());
    EXPECT_FALSE(a.channel());
    EXPECT_THROW(a.reset(1ms), std::logic_error);
  });
}

TEST_P(a_timer, that_is_destroyed_stops) {
  here([] {
    weft::recv_chan<weft::time_point> channel = nullptr;
    {
      weft::timer t(1ms);
      channel = t.channel();
    }
    EXPECT_EQ(weft::select(weft::on_recv(channel), weft::on_timeout(10ms)), 1u);

    {
      weft::timer expired(0ms);
      channel = expired.channel();
    }
    weft::time_point out;
    EXPECT_EQ(channel.try_recv(out), weft::recv_status::empty);

    weft::timer assigned(1ms);
    channel = assigned.channel();
    assigned = weft::timer(1h);
    EXPECT_EQ(weft::select(weft::on_recv(channel), weft::on_timeout(10ms)), 1u);
  });
}

TEST_P(a_timer, that_nobody_waits_for_is_in_no_queue) {
  here([] {
    const auto before = weft::runtime::read_sched_stats().timers_started;
    std::vector<weft::timer> timers;
    for (int i = 0; i < 1000; ++i) timers.emplace_back(std::chrono::hours(1));
    for (auto& t : timers) {
      t.reset(2h);
      EXPECT_TRUE(is_empty(t));
      t.stop();
    }
    EXPECT_EQ(weft::runtime::read_sched_stats().timers_started, before);
  });
}

TEST_P(a_timer, can_be_stopped_while_it_expires_and_then_exactly_one_of_the_two_has_happened) {
  here([] {
    for (int i = 0; i < 200; ++i) {
      weft::timer t{std::chrono::microseconds(i)};
      weft::chan<int> give_up;
      std::atomic<int> received = 0;
      test::crew crew;
      crew.either(i, [&] {
        if (weft::select(weft::on_recv(t.channel()), weft::on_recv(give_up)) == 0) ++received;
      });
      if (i % 3 == 0) let_pass(steady::now() + std::chrono::microseconds(i));
      const bool stopped = t.stop();
      give_up.close();
      crew.wait();
      EXPECT_EQ(received, stopped ? 0 : 1) << "round " << i;
    }
  });
}

// The scenario for which Go changed its timers: nobody receives a value that is older than the last reset.
TEST_P(a_timer, never_gives_a_value_of_an_earlier_setting) {
  here([] {
    weft::timer t(1h);
    for (int i = 0; i < 2000; ++i) {
      t.reset(std::chrono::microseconds(i % 50));
      if (i % 2 == 0) weft::yield();
      const auto before = steady::now();
      t.reset(std::chrono::microseconds(i % 20));
      EXPECT_GE(*t.channel().recv(), before + std::chrono::microseconds(i % 20));
    }
  });
}

TEST_P(a_timer, wakes_plain_threads_and_goroutines_alike) {
  here([] {
    std::atomic<int> woken = 0;
    {
      test::crew crew;
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&, i] {
          weft::timer t{std::chrono::milliseconds(i)};
          if (t.channel().recv()) ++woken;
          t.reset(std::chrono::milliseconds(i));
          if (weft::select(weft::on_recv(t.channel())) == 0) ++woken;
        });
      }
    }
    EXPECT_EQ(woken, 16);
  });
}

TEST_P(a_timer, with_an_earlier_one_behind_it_does_not_delay_that) {
  here([] {
    constexpr int count = 50;
    weft::chan<int> order(count);
    test::crew crew;
    const auto base = steady::now() + 20ms;
    for (int i = count - 1; i >= 0; --i) {
      crew.goroutine([=] {
        weft::timer t(base + i * 2ms - steady::now());
        t.channel().recv();
        order.send(i);
      });
    }
    crew.wait();
    order.close();
    int received = 0;
    for ([[maybe_unused]] int i : order) ++received;
    EXPECT_EQ(received, count);
  });
}

TEST(timers, stand_still_while_the_runtime_does_and_go_on_with_a_thread_that_waits_for_one) {
  std::optional<weft::timer> t;
  weft::run([&] { t.emplace(1ms); });
  EXPECT_TRUE(t->channel().recv());  // the runtime starts again for it
  weft::shutdown();
}

// Enough timers that the later ones are kept apart from those that are due soon: a reset may move one from here to there.
TEST(function_timer, stop_and_reset_at_once_agree_on_whether_it_was_pending) {
  weft::run(
      [] {
        std::vector<weft::timer> others;
        for (int i = 0; i < 1'000; ++i) others.push_back(weft::after_func(100s + i * 1ms, [] {}));
        weft::timer t = weft::after_func(100s, [] {});
        std::atomic<int> round = 0, done = 0;
        bool was_pending = false;
        constexpr int rounds = static_cast<int>(test::scaled(100'000, 10'000, 3'000));
        std::thread resetter([&] {
          for (int r = 1; r <= rounds; ++r) {
            while (round.load() < r) {
            }
            was_pending = t.reset(r % 2 == 0 ? 100s + 150ms : 100s + 190ms);
            done = r;
          }
        });
        int contradictions = 0;
        for (int r = 1; r <= rounds; ++r) {
          t.reset(100s + 170ms);
          others[0].reset(100s + 200ms);
          round = r;
          for (std::atomic<int> k = 0; k < r % 200; ++k) {
          }
          const bool stopped = t.stop();
          while (done.load() < r) {
          }
          contradictions += !stopped && was_pending;
        }
        resetter.join();
        EXPECT_EQ(contradictions, 0);
      },
      {.procs = 2});
}

TEST(a_time, beyond_all_reckoning_never_comes) {
  weft::run([] {
    using far = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;
    weft::sleep_until(far::min());  // long past
    auto later = weft::async([] { weft::sleep_for(20ms); });
    EXPECT_EQ(later.wait_until(far::max()), std::future_status::ready);
    weft::timed_mutex held;
    held.lock();
    auto waiter = weft::async([&] { return held.try_lock_until(far::max()); });
    EXPECT_FALSE(weft::async([&] { return held.try_lock_until(far::min()); }).get());
    weft::sleep_for(20ms);
    held.unlock();
    EXPECT_TRUE(waiter.get());
  });
}

// Counts from the year 1 by tenths of microseconds, as some do: its times in nanoseconds do not fit into 64 bits.
struct old_clock {
  using rep = std::int64_t;
  using period = std::ratio<1, 10'000'000>;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<old_clock>;
  static constexpr bool is_steady = false;
  static time_point now() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return time_point(std::chrono::duration_cast<duration>(since_1970) + duration(621'355'968'000'000'000));
  }
};

TEST(deadlines, of_a_clock_with_an_old_epoch_come_when_it_says) {
  weft::run([] {
    const auto begin = std::chrono::steady_clock::now();
    weft::sleep_until(old_clock::now() + 20ms);
    weft::counting_semaphore<> none(0);
    EXPECT_FALSE(none.try_acquire_until(old_clock::now() + 20ms));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 39ms);
    weft::sleep_until(old_clock::now() - 1h);
    const auto [c, cancel] = weft::with_deadline(weft::background(), old_clock::now() + 1h);
    EXPECT_FALSE(c.error());
    cancel();
    weft::timed_mutex m;
    EXPECT_TRUE(m.try_lock_until(old_clock::time_point::max()));
    m.unlock();
  });
}

}  // namespace
