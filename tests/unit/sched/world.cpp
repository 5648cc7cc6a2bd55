// Stopping and starting the world, and changing the number of Ps: nobody is lost, whatever they do meanwhile.
#include <gtest/gtest.h>
#include <weft/detail/event.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "sched/scheduler.h"
#include "support/await.h"
#include "support/build.h"
#include "support/park.h"

namespace {

using weft::runtime::max_procs;
using weft::runtime::num_goroutine;
using weft::runtime::read_sched_stats;
using weft::sched::phase;
using weft::sched::processor_at;
using weft::sched::processor_state;
using weft::sched::sched;

constexpr int sizes[] = {1, 8, 2, 32, 1, 32, 2, 8};

bool is_frozen() { return sched.life == phase::frozen; }

// Goroutines of which each runs to its end, sooner or later.
struct tally {
  std::atomic<int> spawned{0};
  std::atomic<int> ended{0};

  void spawn(int yields) {
    ++spawned;
    weft::go([this, yields] {
      for (int i = 0; i < yields; ++i) weft::yield();
      ++ended;
    });
  }
  bool all_ended() const { return ended == spawned; }
};

// Until the last of them is not only at its end but gone.
void finish(const tally& t) {
  weft::run(
      [&] {
        test::await([&] { return t.all_ended(); });
        test::await_solitude();
      },
      {.procs = 2});
}

// ---- what a stop leaves behind --------------------------------------------------------------------------------------

TEST(a_stopped_world, has_every_p_and_no_spinner) {
  for (const int procs : sizes) {
    weft::run(
        [&] {
          EXPECT_EQ(max_procs(), procs);
          tally t;
          for (int i = 0; i < 100; ++i) t.spawn(3);
          test::await([&] { return t.all_ended(); });
        },
        {.procs = procs});
    EXPECT_TRUE(is_frozen());
    EXPECT_TRUE(sched.stopping);
    EXPECT_EQ(sched.idle_ps, 0);
    for (int i = 0; i < procs; ++i) EXPECT_EQ(processor_at(i)->state.load(), processor_state::stopped) << "P " << i;
    // A thread that was just being made to look for work finds that there is no P for it.
    test::await([] { return sched.spinning == 0; });
  }
}

TEST(ps_beyond_the_new_number, are_dead_and_have_nothing) {
  weft::run([] {}, {.procs = 8});
  weft::run([] {}, {.procs = 2});
  for (int i = 2; i < 8; ++i) {
    EXPECT_EQ(processor_at(i)->state.load(), processor_state::dead) << "P " << i;
    EXPECT_FALSE(processor_at(i)->has_work()) << "P " << i;
    EXPECT_EQ(processor_at(i)->stack_count, 0u) << "P " << i;
  }
}

// ---- goroutines -----------------------------------------------------------------------------------------------------

TEST(goroutines_that_a_run_leaves_behind, go_on_in_the_next_with_any_number_of_ps) {
  tally t;
  for (const int procs : sizes) {
    weft::run(
        [&] {
          const int before = t.ended;
          for (int i = 0; i < 300; ++i) t.spawn(i % 50);
          test::await([&] { return t.ended >= before + 50; });
        },
        {.procs = procs});
    const int at_the_stop = t.ended;
    // (One that was on its way to its next call into weft, on each P, may come to its end.)
    EXPECT_TRUE(test::stays_false(std::chrono::milliseconds(10), [&] { return t.ended > at_the_stop + procs; }))
        << "a goroutine was scheduled in a stopped world";
  }
  finish(t);
  EXPECT_EQ(num_goroutine(), 0u);
}

TEST(goroutines_in_every_queue, survive_a_change_of_the_number_of_ps) {
  for (const auto& [from, to] : {std::pair(32, 1), std::pair(1, 32), std::pair(8, 2), std::pair(2, 8)}) {
    tally t;
    weft::run(
        [&t] {
          for (int i = 0; i < 2000; ++i) t.spawn(1);  // more than fit into a ring
        },
        {.procs = from});
    weft::run([&] { test::await([&] { return t.all_ended(); }); }, {.procs = to});
  }
}

TEST(parked_goroutines, are_woken_in_a_later_run) {
  constexpr int count = 100;
  weft::detail::event gate;
  std::atomic<int> parked = 0;
  std::atomic<int> ended = 0;
  weft::run(
      [&] {
        for (int i = 0; i < count; ++i) {
          weft::go([&] {
            ++parked;
            gate.wait();
            ++ended;
          });
        }
        test::await([&] { return parked == count && test::waiting_goroutines() == count; });
      },
      {.procs = 8});
  gate.set();  // by a plain thread, in a stopped world
  EXPECT_EQ(ended, 0);
  weft::run([&] { test::await([&] { return ended == count; }); }, {.procs = 2});
}

// ---- goroutines in user code ----------------------------------------------------------------------------------------

// Goroutines that run without a call into weft until they are let go.
struct runners {
  const int count;
  std::atomic<int> running{0};
  std::atomic<int> ended{0};
  std::atomic<bool> release{false};
  std::atomic<long> beats{0};

  void spawn_all() {
    for (int i = 0; i < count; ++i) {
      weft::go([this] {
        ++running;
        test::spin_until([this] {
          ++beats;
          return release.load();
        });
        weft::yield();
        ++ended;
      });
    }
  }
};

TEST(a_goroutine_in_user_code, does_not_hold_up_a_stop_and_goes_on_through_it) {
  for (const auto& [from, to] :
       {std::pair(2, 2), std::pair(2, 1), std::pair(2, 32), std::pair(8, 2), std::pair(8, 8)}) {
    runners all{.count = from - 1};
    weft::run(
        [&] {
          all.spawn_all();
          test::spin_until([&] { return all.running == all.count; });
        },
        {.procs = from});

    EXPECT_TRUE(is_frozen());
    const long beats = all.beats;
    test::await([&] { return all.beats > beats; });
    EXPECT_EQ(all.ended, 0);

    // The first ones to be started again keep their Ps, maybe all that there are: let them go only then.
    std::thread releaser([&] {
      test::await([] { return sched.life == phase::running; });
      all.release = true;
    });
    weft::run([&] { test::await([&] { return all.ended == all.count; }); }, {.procs = to});
    releaser.join();
  }
}

TEST(a_goroutine_in_user_code, that_calls_weft_in_a_stopped_world_waits_for_the_next_run) {
  for (const auto& [from, to] : {std::pair(2, 2), std::pair(8, 1), std::pair(8, 32)}) {
    runners all{.count = from - 1};
    weft::run(
        [&] {
          all.spawn_all();
          test::spin_until([&] { return all.running == all.count; });
        },
        {.procs = from});
    all.release = true;
    // Each of them is on its way into yield(), and does not come out.
    EXPECT_TRUE(test::stays_false(std::chrono::milliseconds(20), [&] { return all.ended != 0; }));
    weft::run([&] { test::await([&] { return all.ended == all.count; }); }, {.procs = to});
  }
}

// With one P it has its turn when main has ended and the stop is on its way. The next run gives its P back to it, and
// there are others now that steal from that P.
TEST(a_goroutine_in_user_code, keeps_its_p_when_the_world_grows) {
  const int rounds = static_cast<int>(test::scaled(30, 20, 20));
  for (int round = 0; round < rounds; ++round) {
    tally t;
    std::atomic<bool> release = false;
    weft::run(
        [&] {
          weft::go([&] {
            // Relaxed: it is the runtime that must order us after the start of the world, not this word.
            test::spin_until([&] { return release.load(std::memory_order_relaxed); });
            for (int i = 0; i < 100; ++i) t.spawn(i % 3);
          });
        },
        {.procs = 1});
    std::thread releaser([&] {
      test::await([] { return sched.life == phase::running; });
      release.store(true, std::memory_order_relaxed);
    });
    weft::run([&] { test::await([&] { return t.spawned == 100 && t.all_ended(); }); }, {.procs = 8});
    releaser.join();
  }
}

TEST(a_goroutine_in_user_code, goes_on_through_many_stops) {
  runners all{.count = 3};
  std::atomic<bool> main_runs = false;
  weft::run(
      [&] {
        all.spawn_all();
        test::spin_until([&] { return all.running == all.count; });
      },
      {.procs = 8});
  // Ps enough for main beside them in each.
  for (const int procs : {8, 32, 4, 16, 9}) {
    main_runs = false;
    weft::run([&] { main_runs = true; }, {.procs = procs});
    EXPECT_TRUE(main_runs);
    EXPECT_EQ(all.ended, 0);
  }
  all.release = true;
  weft::run([&] { test::await([&] { return all.ended == all.count; }); }, {.procs = 1});
}

// ---- plain threads --------------------------------------------------------------------------------------------------

// Plain threads that spawn all the time, whatever the world does. (If it is stopped, their go() starts it again.)
class outsiders {
 public:
  outsiders(int count, tally& t) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, &t] {
        while (!stop_) {
          if (t.spawned - t.ended < 2000) t.spawn(2);
          std::this_thread::yield();
        }
      });
    }
  }
  outsiders(const outsiders&) = delete;
  outsiders& operator=(const outsiders&) = delete;
  ~outsiders() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST(goroutines_that_plain_threads_spawn_during_a_stop, are_not_lost) {
  const int rounds = static_cast<int>(test::scaled(8, 5, 4));
  tally t;
  {
    outsiders threads(3, t);
    for (int round = 0; round < rounds; ++round) {
      for (const int procs : sizes) {
        weft::run(
            [&] {
              const int before = t.ended;
              test::await([&] { return t.ended >= before + 20; });
            },
            {.procs = procs});
      }
    }
  }
  finish(t);
  EXPECT_EQ(num_goroutine(), 0u);
}

TEST(everything_at_once, is_not_lost) {
  const int rounds = static_cast<int>(test::scaled(4, 2, 2));
  tally t;
  {
    outsiders threads(2, t);
    for (int round = 0; round < rounds; ++round) {
      for (const int procs : sizes) {
        std::atomic<bool> release = false;
        std::atomic<int> ended = 0;
        weft::run(
            [&] {
              std::atomic<int> running = 0;
              const int count = std::min(procs - 1, 3);
              for (int i = 0; i < count; ++i) {
                weft::go([&t, &running, &release, &ended] {
                  ++running;
                  test::spin_until([&] { return release.load(); });
                  for (int k = 0; k < 10; ++k) t.spawn(k);
                  ++ended;
                });
              }
              for (int i = 0; i < 100; ++i) t.spawn(i % 10);
              test::await([&] { return running == count; });
            },
            {.procs = procs});
        release = true;
        // They wait for a running world, and the outsiders start one, or we do.
        weft::run([&] { test::await([&] { return ended == std::min(procs - 1, 3); }); }, {.procs = 2});
      }
    }
  }
  finish(t);
  EXPECT_EQ(num_goroutine(), 0u);
  const auto stats = read_sched_stats();
  EXPECT_EQ(stats.goroutines_created, stats.goroutines_finished);
}

}  // namespace
