// The lock of a channel, which may be at home at one P: who gets a home, who sends it away, and that never two have it.
#include "sched/home_lock.h"

#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "sched/revoke.h"
#include "sched/section.h"
#include "support/await.h"
#include "support/build.h"

namespace {

using weft::runtime::read_sched_stats;
using weft::sched::home_lock;

// Enough for a home, also where there are other Ps, and though it has been sent away once.
constexpr int many = 3 * home_lock::needed_among_others;
constexpr int few = home_lock::needed_alone;

bool homes_are_given() { return !test::under_tsan && weft::sched::can_revoke(); }

// Where tests look for races, homes come and go all the time; else one has to wait for them, and does not always want
// to.
constexpr bool homes_come_often = home_lock::needed_among_others < 100;

// Homes that were given, and left, since then.
class homes_seen {
 public:
  std::uint64_t left() const { return read_sched_stats().homes_left - before_.homes_left; }

 private:
  weft::runtime::sched_stats before_ = read_sched_stats();
};

// What the lock guards: two words that are the same whenever it is free.
struct guarded {
  home_lock lock;
  std::uint64_t first = 0, second = 0;

  void use(weft::gmp::machine* m) {
    lock.lock(m);
    ++first;
    weft::base::delay();
    if (first != ++second) ADD_FAILURE() << "two had the lock: " << first << ", " << second;
    lock.unlock();
  }
  // Not at once, if another channel has left its home lately.
  void use_until_at_home() {
    use_from_goroutine(many);
    if (!homes_are_given()) return;
    test::await([this] {
      use_from_goroutine(many);
      return lock.has_home();
    });
  }
  void use_from_goroutine(int times = 1) {
    for (int i = 0; i < times; ++i) {
      weft::gmp::machine* m = weft::sched::enter();
      use(m);
      weft::sched::leave(m);
    }
  }
};

TEST(home_lock, gets_a_home_after_many_uses_by_one_P) {
  weft::run(
      [] {
        guarded g;
        g.use_from_goroutine();
        EXPECT_FALSE(g.lock.has_home());
        g.use_until_at_home();
        g.use_from_goroutine(many);
        EXPECT_EQ(g.lock.has_home(), homes_are_given());
      },
      {.procs = 1});
}

TEST(home_lock, is_sent_away_by_a_plain_thread_and_comes_home_later_than_before) {
  weft::run(
      [] {
        guarded g;
        g.use_until_at_home();
        weft::blocking([&] { std::thread([&] { g.use(nullptr); }).join(); });
        EXPECT_FALSE(g.lock.has_home());
        g.use_from_goroutine(2 * few);  // was enough at first, as the P is alone
        EXPECT_FALSE(g.lock.has_home());
        g.use_until_at_home();
      },
      {.procs = 1});
}

TEST(home_lock, has_no_home_while_uses_from_outside_come_in_between) {
  weft::run(
      [] {
        guarded g;
        for (int i = 0; i < many; ++i) {
          g.use_from_goroutine(few / 2);
          g.use(nullptr);  // as a plain thread does
        }
        EXPECT_FALSE(g.lock.has_home());
      },
      {.procs = 1});
}

TEST(home_lock, one_attempt_fails_only_before_what_is_unusual_and_lock_late_does_it) {
  weft::run(
      [] {
        guarded g;
        int failed = 0;
        for (int i = 0; i < many; ++i) {
          weft::gmp::machine* m = weft::sched::enter();
          if (!g.lock.try_lock(m)) {
            ++failed;
            g.lock.lock_late(m);
          }
          g.lock.unlock();
          weft::sched::leave(m);
        }
        EXPECT_GT(failed, 0);
        EXPECT_LE(failed, many / few);
      },
      {.procs = 1});
}

// One goroutine makes itself at home in one lock after the other. A second one, on other Ps, and a plain thread come by
// when they like, so that they meet it before, while and after it gets its home.
TEST(home_lock, is_never_had_by_two_while_homes_come_and_go) {
  const int rounds = test::under_sanitizer ? 100 : 400;
  const homes_seen homes;
  const auto a_batch = [&] {
    std::vector<guarded> all(static_cast<std::size_t>(rounds));
    std::vector<std::uint64_t> uses(3);
    std::atomic<int> at{0};
    const auto come_by = [&](std::uint64_t seed, auto&& use) {
      weft::base::random random(seed);
      std::uint64_t n = 0;
      for (int i; (i = at.load(std::memory_order_relaxed)) < rounds; ++n) {
        use(all[static_cast<std::size_t>(i)]);
        for (auto k = random.below(20000); k > 0 && at.load(std::memory_order_relaxed) < rounds; --k)
          weft::base::cpu_pause();
      }
      return n;
    };
    std::thread outside([&] { uses[0] = come_by(1, [](guarded& g) { g.use(nullptr); }); });
    weft::wait_group others;
    others.go([&] { uses[1] = come_by(2, [](guarded& g) { g.use_from_goroutine(); }); });
    for (guarded& g : all) {
      g.use_from_goroutine(many);
      uses[2] += many;
      at.fetch_add(1, std::memory_order_relaxed);
    }
    others.wait();
    weft::blocking([&] { outside.join(); });
    std::uint64_t counted = 0;
    for (const guarded& g : all) counted += g.first;
    EXPECT_EQ(counted, uses[0] + uses[1] + uses[2]);
  };
  weft::run(
      [&] {
        test::await([&] {
          a_batch();
          return !homes_are_given() || homes.left() >= 3;
        });
      },
      {.procs = 2});
}

// More Ps than cores: an owner is off its core anywhere, also between its look and its store, while the channel gets
// another home.
TEST(home_lock, is_never_had_by_two_while_its_homes_are_at_several_ps) {
  constexpr int procs = 4;
  const int turns = test::under_sanitizer ? 500 : 2000;
  const homes_seen homes;
  const auto a_crowd = [&] {
    guarded g;
    std::atomic<std::uint64_t> uses{0};
    weft::wait_group all;
    for (int p = 0; p < procs; ++p) {
      all.go([&, p] {
        weft::base::random random(static_cast<std::uint64_t>(p + 1));
        for (int turn = 0; turn < turns; ++turn) {
          const int times = random.below(2) != 0 ? many : 1;
          g.use_from_goroutine(times);
          uses.fetch_add(static_cast<std::uint64_t>(times), std::memory_order_relaxed);
          if (random.below(8) == 0) std::this_thread::yield();
        }
      });
    }
    all.wait();
    EXPECT_EQ(g.first, uses.load());
  };
  weft::run(
      [&] {
        test::await([&] {
          a_crowd();
          return !homes_come_often || !homes_are_given() || homes.left() > 10;
        });
      },
      {.procs = procs});
}

// The user's side of it: what a channel carries arrives, once and in order, wherever its ends are.
TEST(home_lock, a_channel_at_home_loses_nothing_when_its_other_end_moves_to_a_plain_thread) {
  constexpr int items = 20'000;
  weft::run(
      [] {
        const auto given = read_sched_stats().homes_given;
        weft::chan<int> numbers(8);
        std::atomic<bool> enough{false};
        std::atomic<int> sent{0};
        weft::go([&, numbers] {
          for (; !enough.load(std::memory_order_relaxed); ++sent) numbers.send(sent);
          numbers.close();
        });
        int next = 0;
        test::await([&] {
          for (const int end = next + items; next < end;) EXPECT_EQ(numbers.recv(), next++);
          return !homes_are_given() || read_sched_stats().homes_given > given;
        });
        weft::blocking([&] {
          std::thread([&] {
            for (int i : numbers) {
              EXPECT_EQ(i, next++);
              if (i % items == items - 1) enough = true;
            }
          }).join();
        });
        EXPECT_EQ(next, sent);
      },
      {.procs = 1});
}

}  // namespace
