// The scheduler's rules against starvation, in a running runtime: asserted by what was chosen and how often, not by the
// clock. (The choices themselves are in queues.cpp.)
#include <gtest/gtest.h>
#include <weft/detail/event.h>
#include <weft/weft.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gmp/current.h"
#include "sched/preempt.h"
#include "sched/queues.h"
#include "sched/scheduler.h"
#include "sched/section.h"
#include "support/await.h"
#include "support/yielders.h"

namespace {

using test::yielders;
using weft::detail::event;
using weft::runtime::read_sched_stats;
using weft::sched::processor;
using weft::sched::processor_at;
using weft::sched::sched;

// These tests hold a P on purpose, and count what is chosen meanwhile. Set before the first goroutine runs.
const bool cooperative = weft::sched::preemption.off = true;

std::uint32_t picks() { return weft::sched::choice_at(processor_at(0), processor_at(0)->picks.load(std::memory_order_relaxed)); }

// Puts `count` goroutines into the global queue, which only a plain thread can do on purpose. The caller blocks, and
// with it the only P.
template <class Body>
void spawn_outside(int count, Body body) {
  std::thread([&] {
    for (int i = 0; i < count; ++i) weft::go(body, i);
  }).join();
}

// ---- the 61-tick rule -----------------------------------------------------------------------------------------------

TEST(a_goroutine_in_the_global_queue, runs_within_61_choices_while_others_yield_for_ever) {
  weft::run(
      [] {
        yielders busy(30);  // more than slices end meanwhile, even here: the ring is never empty
        for (int round = 0; round < 20; ++round) {
          const std::uint64_t ticks = read_sched_stats().global_ticks;
          std::atomic<std::uint32_t> ran_at = 0;
          spawn_outside(1, [&](int) { ran_at = picks(); });
          const std::size_t queued = sched.global_size;  // with those whose slice was over
          ASSERT_GE(queued, 1u);
          const std::uint32_t spawned_at = picks();
          test::await([&] { return ran_at != 0; });
          EXPECT_LE(ran_at - spawned_at, queued * weft::sched::fairness_ticks);
          EXPECT_GT(read_sched_stats().global_ticks, ticks);
        }
      },
      {.procs = 1});
}

TEST(goroutines_in_the_global_queue, come_one_by_one_in_their_order_while_others_yield_for_ever) {
  constexpr int count = 10;
  weft::run(
      [] {
        yielders busy(30);
        std::vector<int> order;
        std::vector<std::uint32_t> when;
        std::atomic<int> ran = 0;
        const std::uint64_t ticks = read_sched_stats().global_ticks;
        spawn_outside(count, [&](int i) {  // on one P: no two at once
          order.push_back(i);
          when.push_back(picks());
          ++ran;
        });
        test::await([&] { return ran == count; });
        for (int i = 0; i < count; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
        for (std::size_t i = 1; i < count; ++i) {
          EXPECT_EQ((when[i] - when[i - 1]) % weft::sched::fairness_ticks, 0u)
              << "one at each tick, and none between two";
        }
        EXPECT_GE(read_sched_stats().global_ticks - ticks, static_cast<std::uint64_t>(count));
      },
      {.procs = 1});
}

TEST(a_goroutine_in_the_global_queue, runs_while_all_ps_are_busy_with_their_own) {
  weft::run(
      [] {
        yielders busy(20);
        for (int round = 0; round < 20; ++round) {
          std::atomic<int> ran = 0;
          spawn_outside(5, [&](int) { ++ran; });
          test::await([&] { return ran == 5; });
        }
      },
      {.procs = 4});
}

// ---- overflow -------------------------------------------------------------------------------------------------------

TEST(a_burst_of_spawns, moves_half_rings_to_the_global_queue_and_all_of_it_runs) {
  constexpr int ring = processor::ring_size;
  weft::run(
      [] {
        const auto before = read_sched_stats();
        std::atomic<int> ran = 0;
        {
          weft::sched::section whole;  // nobody takes the P from us meanwhile
          const auto spawn = [&ran](int n) {
            for (int i = 0; i < n; ++i) weft::go([&ran] { ++ran; });
          };
          spawn(ring + 1);  // one in runnext, the others in the ring
          EXPECT_EQ(read_sched_stats().overflows, before.overflows);
          EXPECT_EQ(processor_at(0)->ring.size(), static_cast<std::uint32_t>(ring));
          EXPECT_EQ(sched.global_size.load(), 0u);

          spawn(1);
          EXPECT_EQ(read_sched_stats().overflows, before.overflows + 1);
          EXPECT_EQ(processor_at(0)->ring.size(), static_cast<std::uint32_t>(ring / 2));
          EXPECT_EQ(sched.global_size.load(), ring / 2 + 1u);

          spawn(ring / 2 + 1);
          EXPECT_EQ(read_sched_stats().overflows, before.overflows + 2);
          EXPECT_EQ(sched.global_size.load(), 2 * (ring / 2 + 1u));
          EXPECT_EQ(ran, 0);
        }
        test::await([&] { return ran == ring + 1 + 1 + ring / 2 + 1; });
        EXPECT_GE(read_sched_stats().global_taken - before.global_taken, 2 * (ring / 2 + 1u));
      },
      {.procs = 1});
}

TEST(bursts_of_spawns, run_to_the_last_goroutine_whatever_their_size) {
  for (const int procs : {1, 2, 4}) {
    weft::run(
        [] {
          for (const int count : {1, 2, 255, 256, 257, 258, 259, 386, 387, 1000, 5000}) {
            std::atomic<int> ran = 0;
            for (int i = 0; i < count; ++i) weft::go([&ran] { ++ran; });
            test::await([&] { return ran == count; });
          }
        },
        {.procs = procs});
  }
}

// ---- runnext --------------------------------------------------------------------------------------------------------

// Two goroutines that wake each other in turn, each time through an event of its own.
class pair_that_talks {
 public:
  pair_that_talks() {
    for (auto& side : turns_) {
      for (auto& e : side) e.emplace();
    }
    weft::go([this] { talk(0, 1); });
    weft::go([this] { talk(1, 0); });
    test::await([this] { return running_ == 2; });
    turns_[0][0]->set();
  }
  pair_that_talks(const pair_that_talks&) = delete;
  pair_that_talks& operator=(const pair_that_talks&) = delete;
  ~pair_that_talks() {
    stop_ = true;
    test::await([this] { return running_ == 0; });
  }

  long rounds() const { return rounds_; }

 private:
  static constexpr std::size_t slots = 4;

  void talk(std::size_t self, std::size_t other) {
    ++running_;
    for (std::size_t i = 0;; ++i) {
      turns_[self][i % slots]->wait();
      turns_[self][(i + 2) % slots].emplace();  // used by both two rounds ago
      if (stop_ && !last_.exchange(true)) {
        turns_[other][(i + self) % slots]->set();
        break;
      }
      if (last_) break;
      ++rounds_;
      turns_[other][(i + self) % slots]->set();
    }
    --running_;
  }

  std::optional<event> turns_[2][slots];
  std::atomic<int> running_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> last_{false};
  std::atomic<long> rounds_{0};
};

TEST(two_goroutines_that_wake_each_other_for_ever, do_not_starve_a_third_in_the_ring) {
  weft::run(
      [] {
        std::atomic<bool> third_ran = false;
        pair_that_talks pair;
        // In the ring of the P on which the pair keeps passing control to itself through runnext.
        weft::go([&] { third_ran = true; });
        weft::go([] {});
        test::await([&] { return third_ran.load(); });
        EXPECT_GT(pair.rounds(), 0);
      },
      {.procs = 1});
}

TEST(two_goroutines_that_wake_each_other_for_ever, do_not_starve_one_that_yields) {
  weft::run(
      [] {
        pair_that_talks pair;
        for (int i = 0; i < 20; ++i) weft::yield();
        EXPECT_GT(pair.rounds(), 0);
      },
      {.procs = 1});
}

TEST(two_goroutines_that_wake_each_other_for_ever, do_not_starve_one_in_the_global_queue) {
  weft::run(
      [] {
        pair_that_talks pair;
        std::atomic<int> ran = 0;
        spawn_outside(3, [&](int) { ++ran; });
        test::await([&] { return ran == 3; });
        EXPECT_GT(pair.rounds(), 0);
      },
      {.procs = 1});
}

void spawn_the_next(const std::atomic<bool>& stop, std::atomic<bool>& ended) {
  if (stop) {
    ended = true;
  } else {
    weft::go([&] { spawn_the_next(stop, ended); });
  }
}

TEST(a_chain_of_goroutines_that_spawn_one_another, does_not_starve_one_in_the_ring) {
  weft::run(
      [] {
        std::atomic<bool> stop = false;
        std::atomic<bool> ended = false;
        weft::go([&] { stop = true; });  // pushed into the ring by the next one
        weft::go([&] { spawn_the_next(stop, ended); });
        test::await([&] { return ended.load(); });
      },
      {.procs = 1});
}

// ---- time slices ---------------------------------------------------------------------------------------------

TEST(a_goroutine_from_the_global_queue, begins_a_new_time_slice) {
  weft::run(
      [] {
        const auto tick = [] { return processor_at(0)->sched_tick.load(); };
        for (int round = 0; round < 20; ++round) {
          std::atomic<bool> ran = false;
          std::uint32_t seen = 0;
          spawn_outside(1, [&](int) {
            seen = tick();
            ran = true;
          });
          const std::uint32_t before = tick();
          test::await([&] { return ran.load(); });
          EXPECT_GT(seen, before);
        }
      },
      {.procs = 1});
}

TEST(a_stolen_goroutine, begins_a_new_time_slice) {
  weft::run(
      [] {
        for (int round = 0; round < 50; ++round) {
          std::uint32_t before[2] = {processor_at(0)->sched_tick, processor_at(1)->sched_tick};
          const int own = weft::gmp::current_machine()->p->id;
          std::atomic<int> ran = 0;
          for (int i = 0; i < 4; ++i) {
            weft::go([&] {
              const processor* p = weft::gmp::current_machine()->p;
              if (p->id != own) {  // stolen by the other P, all of whose goroutines are
                EXPECT_GT(p->sched_tick, before[p->id]);
                before[p->id] = p->sched_tick;
              }
              ++ran;
            });
          }
          test::spin_until([&] { return ran == 4; });
        }
      },
      {.procs = 2});
}

TEST(a_goroutine_that_only_calls_checkpoint, gives_way_when_its_slice_is_over) {
  weft::run(
      [] {
        const auto before = read_sched_stats();
        std::atomic<bool> other_ran = false;
        weft::go([&] { other_ran = true; });
        test::hang_limit limit(__FILE__, __LINE__);
        while (!other_ran) {
          weft::checkpoint();
          limit.check();
        }
        EXPECT_GT(read_sched_stats().slices_ended, before.slices_ended);
        EXPECT_GT(read_sched_stats().preempted, before.preempted);
      },
      {.procs = 1});
}

}  // namespace
