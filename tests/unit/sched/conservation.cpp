// Work is conserved: it does not last that a P is idle, nobody is on the way to fetch work for it, and two or more wait
// in one queue. A plain thread looks at the scheduler's state while goroutines spawn and then keep their P; and the
// counters must say that what was spawned left that P.
#include <gtest/gtest.h>
#include <weft/detail/event.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "base/pause.h"
#include "base/random.h"
#include "sched/scheduler.h"
#include "support/await.h"
#include "support/build.h"

namespace {

using weft::runtime::read_sched_stats;
using weft::sched::processor;
using weft::sched::processor_at;
using weft::sched::sched;

std::uint32_t waiting_at(const processor& p) {
  return p.ring.size() + (p.runnext.load(std::memory_order_relaxed) != nullptr ? 1 : 0);
}

// One look. The parts are read one after the other, so it may be wrong for a moment; a loss of work is not a moment.
bool work_is_left_lying() {
  if (sched.stopping || sched.idle_ps == 0 || sched.spinning != 0) return false;
  if (sched.global_size >= 2) return true;
  const int procs = sched.procs;
  for (int i = 0; i < procs; ++i) {
    if (waiting_at(*processor_at(i)) >= 2) return true;
  }
  return false;
}

// Looks again and again while it lives.
class watcher {
 public:
  watcher() : thread_([this] { watch(); }) {}
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;
  ~watcher() {
    stop_ = true;
    thread_.join();
  }

  // Work lay there at this many looks in a row.
  static constexpr int too_many = 20;
  int longest() const { return longest_; }
  long looks() const { return looks_; }

 private:
  void watch() {
    for (int in_a_row = 0; !stop_; ++looks_) {
      in_a_row = work_is_left_lying() ? in_a_row + 1 : 0;
      if (in_a_row > longest_) longest_ = in_a_row;
      std::this_thread::sleep_for(std::chrono::milliseconds(in_a_row == 0 ? 1 : 4));
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> longest_{0};
  std::atomic<long> looks_{0};
  std::thread thread_;
};

// Lets a few microseconds pass, so that the other Ms are found spinning, or about to sleep, or asleep.
void dawdle(weft::base::random& dice) {
  for (std::uint32_t i = dice.below(4000); i > 0; --i) weft::base::cpu_pause();
}

class work : public testing::TestWithParam<int> {
 protected:
  int procs() const { return GetParam(); }
  // On two cores, 32 threads take their time.
  int rounds(int plain) const {
    const int share = static_cast<int>(test::scaled(1, 4, 8)) * (procs() > 8 ? 4 : 1);
    return plain / share + 1;
  }

  template <class Round>
  void watch_rounds(int plain, Round round) {
    watcher w;
    weft::run(
        [&] {
          weft::base::random dice(1);
          for (int i = 0; i < rounds(plain) && w.longest() < watcher::too_many; ++i) {
            round();
            dawdle(dice);
          }
        },
        {.procs = procs()});
    EXPECT_LT(w.longest(), watcher::too_many) << "a P stayed idle while goroutines waited";
    EXPECT_GT(w.looks(), 0);
  }
};

INSTANTIATE_TEST_SUITE_P(procs, work, testing::Values(2, 8, 32), testing::PrintToStringParamName());

TEST_P(work, of_a_burst_is_done_by_others_while_the_spawner_keeps_its_p) {
  int checked = 0;
  watch_rounds(200, [&] {
    for (const int burst : {2, 3, 17, 300}) {
      const auto before = read_sched_stats();
      std::atomic<int> ran = 0;
      for (int i = 0; i < burst; ++i) weft::go([&ran] { ++ran; });
      test::spin_until([&] { return ran == burst; });
      const auto after = read_sched_stats();
      // Unless our slice ended between two spawns and we went to another P, all of them were taken from this one: from
      // its ring and runnext, or by way of the global queue.
      if (after.preempted != before.preempted) continue;
      ++checked;
      EXPECT_GE(after.stolen - before.stolen + after.global_taken - before.global_taken,
                static_cast<std::uint64_t>(burst));
    }
  });
  EXPECT_GT(checked, 0);
}

TEST_P(work, of_a_pair_is_done_by_others_while_the_spawner_keeps_its_p) {
  watch_rounds(2000, [&] {
    std::atomic<int> ran = 0;
    weft::go([&ran] { ++ran; });
    weft::go([&ran] { ++ran; });
    test::spin_until([&] { return ran == 2; });
  });
}

TEST_P(work, of_a_single_goroutine_is_done_by_another_while_the_spawner_keeps_its_p) {
  watch_rounds(2000, [&] {
    std::atomic<bool> ran = false;
    weft::go([&ran] { ran = true; });
    test::spin_until([&] { return ran.load(); });
  });
}

TEST_P(work, that_lasts_makes_every_p_busy) {
  watch_rounds(20, [&] {
    std::atomic<int> busy = 0;
    std::atomic<int> ended = 0;
    std::atomic<bool> release = false;
    const int count = 2 * procs();
    for (int i = 0; i < count; ++i) {
      weft::go([&] {
        ++busy;
        test::spin_until([&] { return release.load(); });
        ++ended;
      });
    }
    // We keep one P; each of the others has one of them.
    test::spin_until([&] { return busy == procs() - 1; });
    test::spin_until([] { return sched.idle_ps == 0; });
    release = true;
    test::await([&] { return ended == count; });
  });
}

TEST_P(work, of_those_that_one_goroutine_woke_is_done_by_others_while_it_keeps_its_p) {
  watch_rounds(100, [&] {
    constexpr int count = 40;
    weft::detail::event gate;
    std::atomic<int> waiting = 0;
    std::atomic<int> ran = 0;
    for (int i = 0; i < count; ++i) {
      weft::go([&] {
        ++waiting;
        gate.wait();
        ++ran;
      });
    }
    test::await([&] { return waiting == count; });
    gate.set();
    test::spin_until([&] { return ran == count; });
  });
}

TEST_P(work, of_a_tree_of_goroutines_that_all_keep_their_ps_a_while_is_shared) {
  struct tree {
    std::atomic<int>& ended;
    void operator()(int depth) const {
      if (depth > 0) {
        weft::go(*this, depth - 1);
        weft::go(*this, depth - 1);
      }
      for (int i = 0; i < 500; ++i) weft::base::cpu_pause();
      ++ended;
    }
  };
  watch_rounds(40, [&] {
    std::atomic<int> ended = 0;
    weft::go(tree{ended}, 6);
    test::spin_until([&] { return ended == 127; });
  });
}

TEST_P(work, that_plain_threads_spawn_is_done_while_goroutines_keep_ps) {
  watcher w;
  weft::start({.procs = procs()});
  for (int round = 0; round < rounds(100) && w.longest() < watcher::too_many; ++round) {
    std::atomic<bool> keeps = false;
    std::atomic<bool> release = false;
    std::atomic<int> ran = 0;
    weft::go([&] {
      keeps = true;
      test::spin_until([&] { return release.load(); });
      ++ran;
    });
    test::await([&] { return keeps.load(); });
    for (int i = 0; i < 10; ++i) weft::go([&ran] { ++ran; });
    test::await([&] { return ran == 10; });
    release = true;
    test::await([&] { return ran == 11; });
  }
  weft::shutdown();
  EXPECT_LT(w.longest(), watcher::too_many);
}

}  // namespace
