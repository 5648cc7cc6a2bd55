// A P's timers, by one thread at a time. What threads do to each other is in tests/model/timer_races.cpp.
#include "timer/heap.h"

#include <gtest/gtest.h>

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/build.h"

namespace {

namespace timers = weft::timers;
using timers::heap;
using timers::timer_node;

struct shot {
  int id;
  std::uint64_t seq;
  std::int64_t lateness;
  friend bool operator==(const shot&, const shot&) = default;
};

// A timer that notes when it fires, and then does what it is told.
struct probe {
  explicit probe(int id = 0) : id(id) {}
  ~probe() { timers::stop_sync(node); }
  static void fire(void* self, std::uint64_t seq, std::int64_t lateness) noexcept {
    auto& p = *static_cast<probe*>(self);
    p.shots.push_back({p.id, seq, lateness});
    if (p.log != nullptr) p.log->push_back(p.id);
    if (p.then) p.then();
  }

  int id;
  std::vector<shot> shots;
  std::vector<int>* log = nullptr;
  std::function<void()> then;
  timer_node node{fire, this};
};

// Of many, those of one millisecond stand in no order until it has come; who was first may have been stopped meanwhile.
TEST(timer_heap, says_when_to_come_back_after_it_was_asked_too_early) {
  heap h;
  std::deque<probe> near(300);
  for (probe& p : near) timers::add(h, p.node, 1'000);
  constexpr std::int64_t span = std::int64_t{1} << 20;
  probe first, second;
  timers::add(h, first.node, 100 * span + 10);
  timers::add(h, second.node, 100 * span + 500'000);
  EXPECT_EQ(h.run(1'000).next_when, 100 * span + 10);
  EXPECT_TRUE(timers::stop(first.node));
  const timers::ran early = h.run(100 * span + 10);
  EXPECT_EQ(early.count, 0u);
  EXPECT_EQ(early.next_when, 100 * span + 500'000);
  EXPECT_EQ(h.next_when(), 100 * span + 500'000);
  EXPECT_EQ(h.run(100 * span + 500'000).count, 1u);
}

TEST(timer_heap, callbacks_run_in_the_order_of_deadlines) {
  heap h;
  std::vector<int> log;
  std::deque<probe> probes;
  for (const int when : {50, 10, 40, 20, 30}) {
    probes.emplace_back(when).log = &log;
    timers::add(h, probes.back().node, when);
  }
  EXPECT_EQ(h.run(100).count, 5u);
  EXPECT_EQ(log, (std::vector{10, 20, 30, 40, 50}));
}

TEST(timer_heap, nothing_runs_before_its_deadline) {
  heap h;
  probe a, b;
  timers::add(h, a.node, 100);
  timers::add(h, b.node, 101);
  EXPECT_EQ(h.run(99).count, 0u);
  EXPECT_EQ(h.run(100).count, 1u);
  EXPECT_EQ(a.shots.size(), 1u);
  EXPECT_TRUE(b.shots.empty());
}

TEST(timer_heap, run_returns_the_next_deadline_and_zero_when_none_is_left) {
  heap h;
  probe a, b;
  EXPECT_EQ(h.run(1).next_when, 0);
  timers::add(h, a.node, 100);
  timers::add(h, b.node, 200);
  EXPECT_EQ(h.run(50).next_when, 100);
  EXPECT_EQ(h.run(150).next_when, 200);
  EXPECT_EQ(h.run(250).next_when, 0);
  EXPECT_TRUE(h.empty());
}

TEST(timer_heap, the_callback_gets_the_seq_of_its_deadline_and_how_late_it_is) {
  heap h;
  probe p(3);
  timers::add(h, p.node, 100, 0, 7);
  timers::reset(p.node, 200, 0, 8);
  h.run(230);
  EXPECT_EQ(p.shots, (std::vector<shot>{{3, 8, 30}}));
}

TEST(timer_heap, a_deadline_before_the_beginning_of_time_is_due_at_once) {
  heap h;
  probe a, b;
  timers::add(h, a.node, 0);
  timers::add(h, b.node, -5);
  EXPECT_FALSE(h.empty());
  EXPECT_EQ(h.run(1).count, 2u);
}

TEST(timer_heap, a_one_shot_timer_is_idle_in_its_callback_and_may_be_added_there) {
  heap h;
  probe p;
  p.then = [&] {
    EXPECT_FALSE(p.node.pending());
    EXPECT_FALSE(timers::stop(p.node));
    if (p.shots.size() == 1) timers::add(h, p.node, 500);
  };
  timers::add(h, p.node, 100);
  EXPECT_EQ(h.run(100).next_when, 500);
  EXPECT_EQ(h.run(500).next_when, 0);
  EXPECT_EQ(p.shots.size(), 2u);
}

TEST(timer_heap, a_periodic_timer_is_pending_again_in_its_callback_and_can_be_stopped_there) {
  heap h;
  probe p;
  p.then = [&] {
    EXPECT_TRUE(p.node.pending());
    if (p.shots.size() == 3) {
      EXPECT_TRUE(timers::stop(p.node));
    }
  };
  timers::add(h, p.node, 100, 10);
  EXPECT_EQ(h.run(100).next_when, 110);
  EXPECT_EQ(h.run(110).next_when, 120);
  EXPECT_EQ(h.run(120).next_when, 0);
  EXPECT_EQ(p.shots.size(), 3u);
}

TEST(timer_heap, a_periodic_timer_leaves_out_the_periods_it_missed) {
  heap h;
  probe p;
  timers::add(h, p.node, 100, 10);
  EXPECT_EQ(h.run(135).next_when, 140);
  EXPECT_EQ(h.run(140).next_when, 150);
  EXPECT_EQ(p.shots, (std::vector<shot>{{0, 0, 35}, {0, 0, 0}}));
}

TEST(timer_heap, a_period_beyond_the_end_of_time_does_not_wrap_around) {
  constexpr std::int64_t end_of_time = std::numeric_limits<std::int64_t>::max();
  heap h;
  probe p;
  timers::add(h, p.node, 100, end_of_time);
  EXPECT_EQ(h.run(200).next_when, end_of_time);
  EXPECT_TRUE(timers::stop(p.node));
}

TEST(timer_heap, stop_is_true_exactly_when_it_prevented_a_call) {
  heap h;
  probe p;
  EXPECT_FALSE(timers::stop(p.node)) << "never added";
  timers::add(h, p.node, 100);
  EXPECT_TRUE(timers::stop(p.node));
  EXPECT_FALSE(timers::stop(p.node)) << "stopped already";
  EXPECT_TRUE(h.empty());
  h.run(1000);
  EXPECT_TRUE(p.shots.empty());
  timers::add(h, p.node, 100);
  h.run(1000);
  EXPECT_FALSE(timers::stop(p.node)) << "fired";
  EXPECT_FALSE(timers::stop_sync(p.node)) << "fired";
  EXPECT_EQ(p.shots.size(), 1u);
}

TEST(timer_heap, reset_moves_the_deadline_either_way_and_says_whether_one_was_replaced) {
  heap h;
  probe p, other;
  timers::add(h, other.node, 1000);
  EXPECT_FALSE(timers::add(h, p.node, 500).was_pending);
  EXPECT_TRUE(timers::reset(p.node, 100).was_pending);
  EXPECT_EQ(h.next_when(), 100);
  EXPECT_TRUE(timers::reset(p.node, 2000).was_pending);
  EXPECT_EQ(h.next_when(), 1000);
  timers::stop(p.node);
  EXPECT_FALSE(timers::reset(p.node, 10).was_pending);
  EXPECT_EQ(h.run(10).count, 1u);
}

TEST(timer_heap, a_first_timer_that_is_stopped_is_remembered_until_somebody_wants_to_sleep) {
  heap h;
  probe first, second, third;
  EXPECT_TRUE(timers::add(h, first.node, 100).is_first);
  timers::stop(first.node);
  EXPECT_EQ(h.next_when(), 100);
  EXPECT_FALSE(timers::add(h, second.node, 200).is_first) << "whoever sleeps until 100 will see it";
  timers::stop(second.node);
  h.forget_stopped();
  EXPECT_EQ(h.next_when(), 0);
  EXPECT_TRUE(timers::add(h, third.node, 300).is_first);
  EXPECT_EQ(h.run(250).count, 0u);
  EXPECT_EQ(h.run(300).count, 1u);
}

TEST(timer_heap, add_and_reset_say_when_the_earliest_deadline_came_down) {
  heap h;
  probe a, b;
  EXPECT_TRUE(timers::add(h, a.node, 100).is_first) << "the only one";
  EXPECT_FALSE(timers::add(h, b.node, 200).is_first);
  EXPECT_FALSE(timers::reset(b.node, 150).is_first);
  EXPECT_TRUE(timers::reset(b.node, 50).is_first);
  EXPECT_FALSE(timers::reset(b.node, 60).is_first)
      << "still the earliest, but whoever sleeps wakes too early, not too late";
}

TEST(timer_heap, an_earlier_deadline_of_the_same_timer_never_fires_after_reset) {
  heap h;
  probe p;
  timers::add(h, p.node, 100, 10, 1);
  timers::reset(p.node, 300, 0, 2);
  h.run(1000);
  h.run(2000);
  EXPECT_EQ(p.shots, (std::vector<shot>{{0, 2, 700}}));
}

TEST(timer_heap, a_pending_timer_that_is_added_to_another_heap_stays_where_it_is) {
  heap a, b;
  probe p;
  timers::add(a, p.node, 100);
  EXPECT_TRUE(timers::add(b, p.node, 200).was_pending);
  EXPECT_EQ(a.next_when(), 200);
  EXPECT_TRUE(b.empty());
}

TEST(timer_heap, an_idle_timer_goes_to_the_heap_it_is_added_to_and_reset_keeps_it_there) {
  heap a, b;
  probe p;
  timers::add(a, p.node, 100);
  timers::stop(p.node);
  timers::add(b, p.node, 100);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(b.run(100).count, 1u);
  timers::reset(p.node, 200);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(b.next_when(), 200);
}

TEST(timer_heap, a_timer_added_elsewhere_by_its_own_callback_stays_where_stop_sync_looks_for_it) {
  heap a, b;
  probe p;
  p.then = [&] { timers::add(b, p.node, 200); };
  timers::add(a, p.node, 100);
  EXPECT_EQ(a.run(100).next_when, 200);
  EXPECT_TRUE(b.empty());
}

TEST(timer_heap, a_callback_that_makes_its_timer_due_at_once_does_not_keep_run_from_returning) {
  heap h;
  probe p, other;
  p.then = [&] { timers::add(h, p.node, 1); };
  timers::add(h, p.node, 1);
  timers::add(h, other.node, 50);
  const timers::ran r = h.run(100);
  EXPECT_EQ(r.count, 2u);
  EXPECT_EQ(r.next_when, 1);
  EXPECT_EQ(other.shots.size(), 1u);
}

TEST(timer_heap, run_stops_at_its_limit_and_goes_on_from_there) {
  heap h;
  std::vector<int> log;
  std::deque<probe> probes;
  for (int i = 1; i <= 50; ++i) {
    probes.emplace_back(i).log = &log;
    timers::add(h, probes.back().node, i);
  }
  EXPECT_EQ(h.run(100, 20).next_when, 21);
  EXPECT_EQ(log.size(), 20u);
  EXPECT_EQ(h.run(100).count, 30u);
  EXPECT_TRUE(std::is_sorted(log.begin(), log.end()));
}

TEST(timer_heap, callbacks_may_add_stop_and_reset_other_timers) {
  heap h;
  probe acts, stopped, moved, added;
  acts.then = [&] {
    EXPECT_TRUE(timers::stop(stopped.node));
    EXPECT_TRUE(timers::reset(moved.node, 300).was_pending);
    timers::add(h, added.node, 250);
  };
  timers::add(h, acts.node, 100);
  timers::add(h, stopped.node, 200);
  timers::add(h, moved.node, 200);
  EXPECT_EQ(h.run(100).next_when, 250);
  h.run(1000);
  EXPECT_TRUE(stopped.shots.empty());
  EXPECT_EQ(moved.shots.size(), 1u);
  EXPECT_EQ(added.shots.size(), 1u);
}

TEST(timer_heap, a_one_shot_callback_may_destroy_its_timer) {
  struct self_destroying {
    static void fire(void* self, std::uint64_t, std::int64_t) noexcept { delete static_cast<self_destroying*>(self); }
    timer_node node{fire, this};
  };
  heap h;
  for (int i = 0; i < 100; ++i) timers::add(h, (new self_destroying)->node, 1 + i);
  EXPECT_EQ(h.run(1000).count, 100u);
}

// ---- a P goes away -------------------------------------------------------------------------------------------------

TEST(timer_heap, move_all_moves_every_timer_and_each_finds_its_new_heap) {
  heap from, to;
  std::deque<probe> probes(100);
  for (int i = 0; i < 100; ++i) timers::add(from, probes[static_cast<std::size_t>(i)].node, 100 + i);
  probe there;
  timers::add(to, there.node, 150);
  EXPECT_TRUE(timers::move_all(from, to)) << "100 comes before 150";
  EXPECT_TRUE(from.empty());
  EXPECT_EQ(from.size(), 0u);
  EXPECT_EQ(to.size(), 101u);
  EXPECT_EQ(to.next_when(), 100);
  EXPECT_TRUE(timers::stop(probes[0].node));
  to.forget_stopped();
  EXPECT_EQ(to.next_when(), 101);
  timers::reset(probes[99].node, 10);
  EXPECT_EQ(to.next_when(), 10);
  EXPECT_EQ(to.run(1000).count, 100u);
}

TEST(timer_heap, move_all_of_later_timers_does_not_bring_the_earliest_deadline_down) {
  heap from, to;
  probe early, late;
  timers::add(from, late.node, 200);
  timers::add(to, early.node, 100);
  EXPECT_FALSE(timers::move_all(from, to));
  EXPECT_EQ(to.next_when(), 100);
}

TEST(timer_heap, after_move_all_timers_go_to_the_successor_until_the_heap_is_reopened) {
  heap from, to;
  probe idle, fresh;
  timers::add(from, idle.node, 100);
  timers::stop(idle.node);
  timers::move_all(from, to);
  timers::reset(idle.node, 200);
  timers::add(from, fresh.node, 300);
  EXPECT_TRUE(from.empty());
  EXPECT_EQ(to.size(), 2u);
  timers::stop(fresh.node);
  from.reopen();
  timers::add(from, fresh.node, 300);
  EXPECT_EQ(from.next_when(), 300);
}

TEST(timer_heap, moves_follow_each_other_and_may_come_back) {
  heap a, b, c;
  probe pending, idle;
  timers::add(a, pending.node, 100);
  timers::add(a, idle.node, 100);
  timers::stop(idle.node);
  timers::move_all(a, b);
  timers::move_all(b, c);
  timers::reset(idle.node, 50);
  EXPECT_EQ(c.size(), 2u);
  timers::stop(idle.node);
  timers::move_all(c, a);
  timers::add(b, idle.node, 70);
  EXPECT_EQ(a.size(), 2u);
  EXPECT_EQ(a.run(100).count, 2u);
}

// ---- many ----------------------------------------------------------------------------------------------------------

TEST(timer_heap, a_random_life_fires_what_a_model_fires) {
  struct expected_timer {
    std::int64_t when = 0, period = 0;  // when 0: idle
  };
  constexpr std::size_t count = 300;
  std::mt19937_64 random(11);
  heap heaps[3];
  std::deque<probe> probes(count);
  std::vector<expected_timer> expected(count);
  std::vector<std::size_t> shots(count, 0);
  for (std::int64_t now = 1; now < static_cast<std::int64_t>(test::scaled(20'000, 5'000, 5'000)); ++now) {
    const std::size_t i = random() % count;
    const auto when = now + static_cast<std::int64_t>(random() % 100);
    const std::int64_t period = random() % 4 == 0 ? static_cast<std::int64_t>(1 + random() % 50) : 0;
    switch (random() % 4) {
      case 0:
        ASSERT_EQ(timers::stop(probes[i].node), expected[i].when != 0);
        expected[i].when = 0;
        break;
      case 1:
        if (expected[i].when == 0 && !probes[i].node.pending() && shots[i] == 0) break;  // perhaps never added
        ASSERT_EQ(timers::reset(probes[i].node, when, period).was_pending, expected[i].when != 0);
        expected[i] = {when, period};
        break;
      case 2:
        ASSERT_EQ(timers::add(heaps[random() % 3], probes[i].node, when, period).was_pending, expected[i].when != 0);
        expected[i] = {when, period};
        break;
      case 3: {
        const std::size_t gone = random() % 3;
        if (random() % 8 != 0) break;
        timers::move_all(heaps[gone], heaps[(gone + 1) % 3]);
        heaps[gone].reopen();
        break;
      }
    }
    for (heap& h : heaps) h.run(now);
    for (std::size_t k = 0; k < count; ++k) {
      expected_timer& e = expected[k];
      if (e.when != 0 && e.when <= now) {
        ++shots[k];
        e.when = e.period == 0 ? 0 : e.when + e.period * (1 + (now - e.when) / e.period);
      }
      ASSERT_EQ(probes[k].shots.size(), shots[k]) << "timer " << k << " at " << now;
    }
  }
}

TEST(timer_heap, a_million_timers_created_and_stopped_leave_no_memory_behind_and_take_none_from_malloc) {
  heap h;
  std::deque<timer_node> nodes;
  for (std::size_t i = 0; i < test::scaled(1'000'000, 100'000, 100'000); ++i) {
    nodes.emplace_back([](void*, std::uint64_t, std::int64_t) noexcept {}, nullptr);
  }
  const struct mallinfo2 before = ::mallinfo2();
  std::mt19937_64 random(5);
  for (int round = 0; round < 2; ++round) {
    for (timer_node& n : nodes) timers::add(h, n, static_cast<std::int64_t>(1 + random() % 1'000'000'000));
    EXPECT_EQ(h.size(), nodes.size());
    for (timer_node& n : nodes) EXPECT_TRUE(timers::stop(n));
    EXPECT_EQ(h.size(), 0u);
  }
  const struct mallinfo2 after = ::mallinfo2();
  EXPECT_EQ(before.uordblks, after.uordblks);
  EXPECT_EQ(before.hblkhd, after.hblkhd);
}

TEST(timer_heap, a_million_timers_fire_in_order) {
  struct counting {
    static void fire(void* self, std::uint64_t seq, std::int64_t) noexcept {
      auto& c = *static_cast<counting*>(self);
      c.sorted = c.sorted && c.last <= seq;
      c.last = seq;
      ++c.count;
    }
    std::uint64_t last = 0;
    std::size_t count = 0;
    bool sorted = true;
  };
  heap h;
  counting c;
  std::deque<timer_node> nodes;
  std::mt19937_64 random(6);
  for (std::size_t i = 0; i < test::scaled(1'000'000, 100'000, 100'000); ++i) {
    const auto when = static_cast<std::int64_t>(1 + random() % 1'000'000'000);
    timers::add(h, nodes.emplace_back(counting::fire, &c), when, 0, static_cast<std::uint64_t>(when));
  }
  EXPECT_EQ(h.run(2'000'000'000).count, nodes.size());
  EXPECT_EQ(c.count, nodes.size());
  EXPECT_TRUE(c.sorted);
}

// ---- misuse --------------------------------------------------------------------------------------------------------

TEST(timer_heap_death, a_timer_destroyed_while_pending_ends_the_program) {
  EXPECT_DEATH(
      {
        heap h;
        timer_node node([](void*, std::uint64_t, std::int64_t) noexcept {}, nullptr);
        timers::add(h, node, 100);
      },
      "destroyed while it is pending");
}

TEST(timer_heap_death, reset_of_a_timer_that_was_never_added_ends_the_program) {
  probe p;
  EXPECT_DEATH(timers::reset(p.node, 100), "never added");
}

TEST(timer_heap_death, a_heap_destroyed_with_timers_ends_the_program) {
  EXPECT_DEATH(
      {
        probe p;
        heap h;
        timers::add(h, p.node, 100);
      },
      "destroyed with 1 timers");
}

TEST(a_heap_in_a_mask, is_listed_from_its_first_timer_until_it_is_empty_and_says_so) {
  std::atomic<std::uint64_t> mask{0x10};
  heap h;
  h.list_in(mask, 0x4);
  EXPECT_EQ(mask, 0x10u);
  probe a(1), b(2);
  timers::add(h, a.node, 100);
  EXPECT_EQ(mask, 0x14u);
  timers::add_fresh(h, b.node, 50);
  EXPECT_EQ(mask, 0x14u);
  h.unlist_if_empty();
  EXPECT_EQ(mask, 0x14u);
  h.run(200);
  EXPECT_EQ(mask, 0x14u);  // timers come and go
  h.unlist_if_empty();
  EXPECT_EQ(mask, 0x10u);
  timers::reset(a.node, 300);
  EXPECT_EQ(mask, 0x14u);
  timers::stop(a.node);
  h.unlist_if_empty();  // next_when() is that of the stopped one still
  EXPECT_EQ(mask, h.next_when() == 0 ? 0x10u : 0x14u);
  h.forget_stopped();
  h.unlist_if_empty();
  EXPECT_EQ(mask, 0x10u);
}

TEST(a_heap_in_a_mask, to_which_the_timers_of_another_move_is_listed) {
  std::atomic<std::uint64_t> mask{0};
  heap from, to;
  from.list_in(mask, 1);
  to.list_in(mask, 2);
  probe a(1);
  timers::add(from, a.node, 100);
  EXPECT_EQ(mask, 1u);
  timers::move_all(from, to);
  from.unlist_if_empty();
  EXPECT_EQ(mask, 2u);
  timers::stop(a.node);
}

}  // namespace
