// Which goroutine a P chooses next: runnext, ring and global queue, by hand, on Ps that no thread owns.
#include "sched/queues.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace {

using weft::sched::fairness_ticks;
using weft::sched::longest_streak;
using weft::sched::pick_fast;
using weft::sched::processor;
using weft::sched::put_global;
using weft::sched::put_last;
using weft::sched::put_next;
using weft::sched::runnable;
using weft::sched::sched;

constexpr int ring_size = processor::ring_size;

class a_p : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    p.alone = GetParam();
    sched.procs.store(p.alone ? 1 : 4);
  }
  void TearDown() override { take_all_global(); }

  runnable* item(int i) { return &items[i]; }
  int number(const runnable* r) const { return r == nullptr ? -1 : static_cast<int>(r - items); }

  int pick() { return number(pick_fast(&p)); }
  std::vector<int> pick_all() {
    std::vector<int> all;
    for (int n; (n = pick()) != -1;) all.push_back(n);
    return all;
  }
  std::vector<int> drain_ring() {
    std::vector<int> all;
    while (const runnable* r = p.ring.pop()) all.push_back(number(r));
    return all;
  }
  int take_global_one() {
    weft::base::lock_guard guard(sched.lock);
    return number(weft::sched::take_global_one(&p));
  }
  int take_global_batch() {
    weft::base::lock_guard guard(sched.lock);
    return number(weft::sched::take_global_batch(&p));
  }
  std::vector<int> take_all_global() {
    std::vector<int> all;
    for (int n; (n = take_global_one()) != -1;) all.push_back(n);
    return all;
  }
  static std::size_t global_size() { return sched.global_size.load(); }
  static std::vector<int> range(int first, int last) {
    std::vector<int> all;
    for (int i = first; i <= last; ++i) all.push_back(i);
    return all;
  }
  std::uint32_t tick() const { return p.sched_tick.load(); }

  processor p;
  runnable items[1000];
};

INSTANTIATE_TEST_SUITE_P(that, a_p, testing::Values(false, true), [](const auto& alone) -> std::string {
  return alone.param ? "is_the_only_one" : "has_thieves";
});

TEST_P(a_p, runs_the_newest_first_and_the_others_in_the_order_in_which_they_came) {
  for (int i = 0; i < 5; ++i) put_next(&p, item(i));
  EXPECT_EQ(pick_all(), (std::vector<int>{4, 0, 1, 2, 3}));
}

TEST_P(a_p, runs_those_at_the_back_after_all_others) {
  put_last(&p, item(0));
  put_next(&p, item(1));
  put_last(&p, item(2));
  put_next(&p, item(3));
  EXPECT_EQ(pick_all(), (std::vector<int>{3, 0, 2, 1}));
}

TEST_P(a_p, says_whether_a_newcomer_is_the_only_one_waiting) {
  EXPECT_TRUE(put_next(&p, item(0)));
  EXPECT_FALSE(put_next(&p, item(1)));
  pick_all();
  EXPECT_TRUE(put_next(&p, item(2)));
  pick_all();
  put_last(&p, item(3));
  EXPECT_FALSE(put_next(&p, item(4)));
}

// ---- time slices ----------------------------------------------------------------------------------------------------

TEST_P(a_p, lets_the_one_from_runnext_inherit_the_time_slice) {
  const std::uint32_t before = tick();
  put_next(&p, item(0));
  EXPECT_EQ(pick(), 0);
  EXPECT_EQ(tick(), before);
}

TEST_P(a_p, begins_a_new_time_slice_with_the_one_from_the_ring) {
  const std::uint32_t before = tick();
  put_last(&p, item(0));
  EXPECT_EQ(pick(), 0);
  EXPECT_EQ(tick(), before + 1);
}

TEST_P(a_p, chooses_nobody_by_the_fast_way_when_the_slice_is_over) {
  put_next(&p, item(0));
  p.attention.store(true);
  EXPECT_EQ(pick(), -1);
  EXPECT_TRUE(p.has_work());
  p.attention.store(false);
  EXPECT_EQ(pick(), 0);
}

TEST_P(a_p, lets_the_ring_have_its_turn_in_a_long_chain_of_runnexts) {
  put_last(&p, item(0));
  int chosen = -1;
  std::uint32_t picks = 0;
  while (chosen != 0) {
    put_next(&p, item(1));
    chosen = pick();
    ASSERT_LE(++picks, longest_streak);
  }
  EXPECT_EQ(pick_all(), std::vector<int>{1}) << "the one that stood in runnext queued up";
}

TEST_P(a_p, puts_off_a_timer_that_is_due_for_the_one_in_runnext_but_not_twice) {
  weft::timers::timer_node timer([](void*, std::uint64_t, std::int64_t) noexcept {}, nullptr);
  weft::timers::add(p.timers, timer, 1);
  put_next(&p, item(0));
  EXPECT_EQ(pick(), 0);
  put_next(&p, item(1));
  EXPECT_EQ(pick(), -1);
  p.timers_put_off = false;  // the slow way, once it has run timers
  EXPECT_EQ(pick(), 1);
  put_last(&p, item(2));
  EXPECT_EQ(pick(), -1) << "not for those in the ring";
  EXPECT_TRUE(weft::timers::stop(timer));
  p.timers.forget_stopped();
  EXPECT_EQ(pick_all(), std::vector<int>{2});
}

// ---- the global queue -----------------------------------------------------------------------------------------------

TEST_P(a_p, looks_at_the_global_queue_every_61st_time) {
  EXPECT_EQ(fairness_ticks, 61u);
  put_global(item(999));
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 1; i < fairness_ticks; ++i) {
      put_last(&p, item(0));
      ASSERT_EQ(pick(), 0) << "round " << round << ", choice " << i;
    }
    put_last(&p, item(0));
    ASSERT_EQ(pick(), -1) << "the slow way, which looks there";
    p.picks.store(p.picks.load() + 1);  // as the slow way does
    ASSERT_EQ(pick(), 0);
    p.picks.store(p.picks.load() - 1);
  }
}

TEST_P(a_p, does_not_look_there_if_there_is_nothing) {
  for (std::uint32_t i = 0; i < 3 * fairness_ticks; ++i) {
    put_last(&p, item(0));
    ASSERT_EQ(pick(), 0);
  }
}

TEST_P(a_p, moves_half_of_a_full_ring_and_the_newcomer_to_the_global_queue) {
  for (int i = 0; i < ring_size; ++i) put_last(&p, item(i));
  EXPECT_EQ(global_size(), 0u);
  EXPECT_EQ(p.counters.overflows.read(), 0u);

  put_last(&p, item(ring_size));
  EXPECT_EQ(p.counters.overflows.read(), 1u);
  EXPECT_EQ(global_size(), ring_size / 2 + 1u);
  std::vector<int> moved = range(0, ring_size / 2 - 1);
  moved.push_back(ring_size);
  EXPECT_EQ(take_all_global(), moved);
  EXPECT_EQ(drain_ring(), range(ring_size / 2, ring_size - 1));
}

TEST_P(a_p, overflows_with_the_one_that_runnext_pushes_out) {
  for (int i = 0; i < ring_size + 1; ++i) put_next(&p, item(i));
  EXPECT_EQ(global_size(), 0u);
  put_next(&p, item(ring_size + 1));
  EXPECT_EQ(global_size(), ring_size / 2 + 1u);
  EXPECT_EQ(pick(), ring_size + 1);
  EXPECT_EQ(take_all_global().back(), ring_size);
}

TEST_P(a_p, loses_nobody_in_many_overflows) {
  for (int i = 0; i < 1000; ++i) put_next(&p, item(i));
  EXPECT_GT(p.counters.overflows.read(), 1u);
  std::vector<bool> seen(1000);
  for (const int n : take_all_global()) seen[static_cast<std::size_t>(n)] = true;
  for (const int n : pick_all()) {
    EXPECT_FALSE(seen[static_cast<std::size_t>(n)]);
    seen[static_cast<std::size_t>(n)] = true;
  }
  EXPECT_EQ(seen, std::vector<bool>(1000, true));
}

TEST_P(a_p, takes_one_from_the_front_of_the_global_queue) {
  for (int i = 0; i < 3; ++i) put_global(item(i));
  EXPECT_EQ(take_global_one(), 0);
  EXPECT_EQ(global_size(), 2u);
  EXPECT_EQ(p.counters.global_taken.read(), 1u);
  EXPECT_EQ(take_all_global(), range(1, 2));
  EXPECT_EQ(take_global_one(), -1);
  EXPECT_EQ(p.counters.global_taken.read(), 3u);
}

TEST_P(a_p, takes_its_fair_share_of_the_global_queue) {
  const int procs = sched.procs.load();
  for (const int size : {1, 2, 3, 10, 100}) {
    for (int i = 0; i < size; ++i) put_global(item(i));
    const int share = std::min(size, size / procs + 1);
    const std::uint64_t taken_before = p.counters.global_taken.read();
    EXPECT_EQ(take_global_batch(), 0);
    EXPECT_EQ(drain_ring(), range(1, share - 1));
    EXPECT_EQ(global_size(), static_cast<std::size_t>(size - share));
    EXPECT_EQ(p.counters.global_taken.read() - taken_before, static_cast<std::uint64_t>(share));
    EXPECT_EQ(take_all_global(), range(share, size - 1));
  }
  EXPECT_EQ(p.counters.global_batches.read(), 5u);
}

TEST_P(a_p, takes_at_most_half_a_ring_from_the_global_queue) {
  for (int i = 0; i < 1000; ++i) put_global(item(i));
  EXPECT_EQ(take_global_batch(), 0);
  EXPECT_EQ(drain_ring(), range(1, ring_size / 2 - 1));
  EXPECT_EQ(global_size(), 1000u - ring_size / 2);
}

TEST_P(a_p, takes_nothing_from_an_empty_global_queue) {
  EXPECT_EQ(take_global_batch(), -1);
  EXPECT_EQ(take_global_one(), -1);
  EXPECT_EQ(p.counters.global_batches.read(), 0u);
}

}  // namespace
