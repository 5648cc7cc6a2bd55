// Work is conserved: it does not last that a P is idle, nobody is on the way to fetch work for it, and two or more wait
// in one queue. A plain thread looks at the scheduler's state while goroutines spawn and then keep their P; and the
// counters must say that what was spawned left that P.
//
// sysmon looks after goroutines that stand in a queue for long, however that came about. So that it does not hide what
// it repairs, it is kept asleep, wherever the handshake between those who submit and those who go idle must do alone.
#include <gtest/gtest.h>
#include <weft/detail/event.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
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

// Who waits for work to be done counts how often it has looked, and gives up its core each time: so other threads of
// the program that can run have run, too, since this number was smaller. The kernel may have kept all of them from
// their cores for long, in the middle of whatever they did; that says nothing about the scheduler.
std::atomic<long> beats = 0;

// Keeps the P.
template <class Condition>
void spin_until(Condition condition, int line = __builtin_LINE()) {
  test::spin_until(
      [&] {
        ++beats;
        return condition();
      },
      __FILE__, line);
}

// Looks every few milliseconds while it lives, and ends the program if work lies there at too many looks in a row, with
// many beats between any two of them: who waits for that work would wait for ever.
class watcher {
 public:
  watcher() : thread_([this] { watch(); }) {}
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;
  ~watcher() {
    stop_ = true;
    thread_.join();
  }
  long looks() const { return looks_; }

 private:
  static constexpr int too_many = 20;
  static constexpr long many_beats = 200;

  void watch() {
    int in_a_row = 0;
    for (long last = beats; !stop_; ++looks_) {
      if (!work_is_left_lying()) {
        in_a_row = 0;
        last = beats;
      } else if (beats - last > many_beats) {
        if (++in_a_row == too_many) report();
        last = beats;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(in_a_row == 0 ? 1 : 4));
    }
  }

  [[noreturn]] static void report() {
    std::fprintf(stderr,
                 "work is left lying: %d of %d Ps are idle, nobody looks for work, %zu wait in the global queue\n",
                 sched.idle_ps.load(), sched.procs.load(), sched.global_size.load());
    for (int i = 0; i < sched.procs; ++i) {
      const std::uint32_t n = waiting_at(*processor_at(i));
      if (n != 0) std::fprintf(stderr, "and %u at P %d\n", n, i);
    }
    std::abort();
  }

  std::atomic<bool> stop_{false};
  std::atomic<long> looks_{0};
  std::thread thread_;
};

// sysmon sleeps while all Ps are idle, and whoever takes a P from the idle list then wakes it. Not if it is told that
// sysmon is awake already.
class sysmon_kept_asleep {
 public:
  sysmon_kept_asleep() { test::await(&take_its_alarm_clock); }
  sysmon_kept_asleep(const sysmon_kept_asleep&) = delete;
  sysmon_kept_asleep& operator=(const sysmon_kept_asleep&) = delete;
  ~sysmon_kept_asleep() {
    weft::base::lock_guard guard(sched.lock);
    sched.sysmon_note.wake();
  }

 private:
  static bool take_its_alarm_clock() {
    weft::base::lock_guard guard(sched.lock);
    return std::exchange(sched.sysmon_asleep, false);
  }
};

// Lets a few microseconds pass, so that the other Ms are found spinning, or about to sleep, or asleep.
void dawdle(weft::base::random& dice) {
  for (std::uint32_t i = dice.below(4000); i > 0; --i) weft::base::cpu_pause();
}

enum class sysmon { asleep, awake };

class work : public testing::TestWithParam<int> {
 protected:
  int procs() const { return GetParam(); }
  // On two cores, 32 threads take their time.
  int rounds(int plain) const {
    const int share = static_cast<int>(test::scaled(1, 4, 8)) * (procs() > 8 ? 4 : 1);
    return plain / share + 1;
  }

  // In a goroutine, with somebody watching.
  template <class Round>
  void watch_rounds(int plain, sysmon s, Round round) {
    weft::start({.procs = procs()});
    {
      watcher w;
      std::optional<sysmon_kept_asleep> quiet;
      if (s == sysmon::asleep) quiet.emplace();
      weft::async([&] {
        weft::base::random dice(1);
        for (int i = 0; i < rounds(plain) || w.looks() < 10; ++i) {
          round();
          dawdle(dice);
        }
      }).get();
    }
    weft::shutdown();
  }
};

INSTANTIATE_TEST_SUITE_P(procs, work, testing::Values(2, 8, 32), testing::PrintToStringParamName());

// What lies alone in a runnext may be left to its P for a while, or to sysmon. So these wait for all but one.

TEST_P(work, of_a_burst_is_done_by_others_while_the_spawner_keeps_its_p) {
  watch_rounds(60, sysmon::asleep, [&] {
    for (const int burst : {3, 17, 300}) {
      const auto before = read_sched_stats();
      std::atomic<int> ran = 0;
      for (int i = 0; i < burst; ++i) weft::go([&ran] { ++ran; });
      spin_until([&] { return ran >= burst - 1; });
      const auto after = read_sched_stats();
      // Nobody ends our slice, so they were taken from this P: from its ring and runnext, or by way of the global
      // queue.
      EXPECT_GE(after.stolen - before.stolen + after.global_taken - before.global_taken,
                static_cast<std::uint64_t>(burst - 1));
      test::await([&] { return ran == burst; });
    }
  });
}

TEST_P(work, of_a_pair_is_begun_by_another_while_the_spawner_keeps_its_p) {
  watch_rounds(500, sysmon::asleep, [&] {
    std::atomic<int> ran = 0;
    weft::go([&ran] { ++ran; });
    weft::go([&ran] { ++ran; });
    spin_until([&] { return ran >= 1; });
    test::await([&] { return ran == 2; });
  });
}

TEST_P(work, of_a_single_goroutine_is_done_by_another_while_the_spawner_keeps_its_p) {
  watch_rounds(500, sysmon::awake, [&] {
    std::atomic<bool> ran = false;
    weft::go([&ran] { ran = true; });
    spin_until([&] { return ran.load(); });
  });
}

TEST_P(work, that_lasts_makes_every_p_busy) {
  watch_rounds(20, sysmon::asleep, [&] {
    std::atomic<int> busy = 0;
    std::atomic<int> ended = 0;
    std::atomic<bool> release = false;
    const int count = 2 * procs();
    for (int i = 0; i < count; ++i) {
      weft::go([&] {
        ++busy;
        spin_until([&] { return release.load(); });
        ++ended;
      });
    }
    // We keep one P; each of the others has one of them.
    spin_until([&] { return busy == procs() - 1; });
    spin_until([] { return sched.idle_ps == 0; });
    release = true;
    test::await([&] { return ended == count; });
  });
}

TEST_P(work, of_those_that_one_goroutine_woke_is_done_by_others_while_it_keeps_its_p) {
  watch_rounds(50, sysmon::asleep, [&] {
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
    spin_until([&] { return ran >= count - 1; });
    test::await([&] { return ran == count; });
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
  watch_rounds(20, sysmon::asleep, [&] {
    std::atomic<int> ended = 0;
    weft::go(tree{ended}, 6);
    weft::go(tree{ended}, 6);
    spin_until([&] { return ended >= 127; });
    test::await([&] { return ended == 254; });
  });
}

TEST_P(work, that_plain_threads_spawn_is_done_while_a_goroutine_keeps_its_p) {
  weft::start({.procs = procs()});
  {
    watcher w;
    sysmon_kept_asleep quiet;
    for (int round = 0; round < rounds(50) || w.looks() < 10; ++round) {
      std::atomic<bool> keeps = false;
      std::atomic<bool> release = false;
      std::atomic<int> ran = 0;
      weft::go([&] {
        keeps = true;
        spin_until([&] { return release.load(); });
        ++ran;
      });
      test::await([&] { return keeps.load(); });
      for (int i = 0; i < 10; ++i) weft::go([&ran] { ++ran; });
      test::await([&] { return ran == 10; });
      release = true;
      test::await([&] { return ran == 11; });
    }
  }
  weft::shutdown();
}

// The other side of it: who takes one of three that talk has next to nothing to do with it. (gmp/hauls.h)
TEST(goroutines_that_talk, are_left_to_their_p_once_it_has_not_paid_to_take_one) {
  if (test::under_sanitizer) return;  // all is so slow there that it pays
  weft::run(
      [] {
        const auto before = read_sched_stats();
        weft::chan<int> a, b;
        std::atomic<bool> stop = false;
        std::atomic<int> ended = 0;
        for (const auto& c : {a, b}) {
          weft::go([&, c] {
            while (!stop) c.send(0);
            ++ended;
          });
        }
        const auto ignore = [](std::optional<int>) {};
        test::await([&] {
          for (int i = 0; i < 1000; ++i) weft::select(weft::on_recv(a, ignore), weft::on_recv(b, ignore));
          return read_sched_stats().steals_put_off > before.steals_put_off;
        });
        stop = true;
        test::await([&] {
          weft::select(weft::on_recv(a, ignore), weft::on_recv(b, ignore), weft::on_default([] {}));
          return ended == 2;
        });
      },
      {.procs = 2});
}

}  // namespace
