// Timers under threads: whatever the interleaving, each deadline ends exactly once, and a timer that is said to be over
// is over. Build with the thread sanitizer and random delays for what a plain run does not see.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/build.h"
#include "timer/heap.h"

namespace {

namespace timers = weft::timers;
using timers::heap;
using timers::timer_node;

constexpr std::size_t rounds = test::scaled(100'000, 20'000, 10'000);

// Threads that are joined at the end of the scope, after `over` was set.
class crew {
 public:
  ~crew() { finish(); }
  template <class F>
  void spawn(F f) {
    threads_.emplace_back(std::move(f));
  }
  // For those that work until the others have finished.
  template <class F>
  void spawn_helper(F step) {
    helpers_.emplace_back([this, step]() mutable {
      while (!over_.load(std::memory_order_acquire)) step();
    });
  }
  void finish() {
    for (auto& t : threads_) t.join();
    threads_.clear();
    over_.store(true, std::memory_order_release);
    for (auto& t : helpers_) t.join();
    helpers_.clear();
  }

 private:
  std::vector<std::thread> threads_, helpers_;
  std::atomic<bool> over_{false};
};

// Time goes on whenever somebody looks.
class fake_clock {
 public:
  std::int64_t now() { return now_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> now_{1};
};

// ---- each deadline ends exactly once -------------------------------------------------------------------------------

struct tally {
  std::atomic<std::uint64_t> armed{0}, fired{0}, stopped{0}, replaced{0};
  static void fire(void* self, std::uint64_t, std::int64_t) noexcept {
    static_cast<tally*>(self)->fired.fetch_add(1, std::memory_order_relaxed);
  }
};

void random_operations(tally& t, std::deque<timer_node>& nodes, heap* heaps, std::size_t heap_count, fake_clock& clock,
                       std::uint64_t seed) {
  std::mt19937_64 random(seed);
  // Longer if the threads that run timers have not had a core yet.
  for (std::size_t i = 0; i < rounds || t.fired.load(std::memory_order_relaxed) == 0; ++i) {
    timer_node& node = nodes[random() % nodes.size()];
    const std::int64_t when = clock.now() + static_cast<std::int64_t>(random() % 64);
    switch (random() % 3) {
      case 0:
        if (timers::stop(node)) t.stopped.fetch_add(1, std::memory_order_relaxed);
        break;
      case 1:
        t.armed.fetch_add(1, std::memory_order_relaxed);
        if (timers::reset(node, when).was_pending) t.replaced.fetch_add(1, std::memory_order_relaxed);
        break;
      case 2:
        t.armed.fetch_add(1, std::memory_order_relaxed);
        if (timers::add(heaps[random() % heap_count], node, when).was_pending) {
          t.replaced.fetch_add(1, std::memory_order_relaxed);
        }
        break;
    }
  }
}

void every_deadline_ends_once(int node_count, bool moving) {
  constexpr std::size_t heap_count = 3;
  heap heaps[heap_count];
  fake_clock clock;
  tally t;
  std::deque<timer_node> nodes;
  for (int i = 0; i < node_count; ++i) {
    timers::add(heaps[0], nodes.emplace_back(tally::fire, &t), 1);
    t.armed.fetch_add(1, std::memory_order_relaxed);
  }
  {
    crew c;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      c.spawn([&, seed] { random_operations(t, nodes, heaps, heap_count, clock, seed); });
    }
    for (int i = 0; i < 2; ++i) {  // two: a heap has its owner and thieves
      c.spawn_helper([&] {
        for (heap& h : heaps) h.run(clock.now());
      });
    }
    if (moving) {
      c.spawn_helper([&, from = std::size_t{0}]() mutable {
        timers::move_all(heaps[from], heaps[(from + 1) % heap_count]);
        std::this_thread::yield();
        heaps[from].reopen();
        from = (from + 1) % heap_count;
      });
    }
  }
  for (heap& h : heaps) {
    h.run(INT64_MAX);
    EXPECT_TRUE(h.empty());
  }
  EXPECT_EQ(t.armed.load(), t.fired.load() + t.stopped.load() + t.replaced.load());
  EXPECT_GT(t.stopped.load(), 0u);
}

TEST(timer_races, every_deadline_fires_once_or_is_stopped_or_is_replaced) { every_deadline_ends_once(40, false); }

TEST(timer_races, every_deadline_ends_once_also_while_heaps_come_and_go) { every_deadline_ends_once(40, true); }

TEST(timer_races, every_deadline_ends_once_also_if_all_fight_for_one_timer) { every_deadline_ends_once(1, false); }

TEST(timer_races, periodic_timers_survive_moves_and_stop_for_good) {
  heap heaps[2];
  fake_clock clock;
  for (std::size_t round = 0; round < rounds / 1000; ++round) {
    struct ticking {
      static void fire(void* self, std::uint64_t, std::int64_t) noexcept {
        auto& p = *static_cast<ticking*>(self);
        EXPECT_FALSE(p.over.load(std::memory_order_acquire));
        p.ticks.fetch_add(1, std::memory_order_relaxed);
      }
      std::atomic<bool> over{false};
      std::atomic<int> ticks{0};
      timer_node node{fire, this};
    };
    std::deque<ticking> ticking_timers(4);
    for (ticking& p : ticking_timers) timers::add(heaps[round % 2], p.node, clock.now(), 3);
    crew c;
    c.spawn([&] {
      for (ticking& p : ticking_timers) {
        while (p.ticks.load(std::memory_order_relaxed) < 20) std::this_thread::yield();
        EXPECT_TRUE(timers::stop_sync(p.node));
        p.over.store(true, std::memory_order_release);
      }
    });
    c.spawn_helper([&] {
      for (heap& h : heaps) h.run(clock.now());
    });
    c.spawn_helper([&, from = 0]() mutable {
      timers::move_all(heaps[from], heaps[1 - from]);
      heaps[from].reopen();
      from = 1 - from;
      std::this_thread::yield();
    });
    c.finish();
    EXPECT_TRUE(heaps[0].empty());
    EXPECT_TRUE(heaps[1].empty());
  }
}

// ---- timers on a stack ---------------------------------------------------------------------------------------------

// What the callback writes is not atomic: the sanitizer sees whether stop_sync really comes after it.
struct on_stack {
  static void fire(void* self, std::uint64_t, std::int64_t) noexcept { ++static_cast<on_stack*>(self)->calls; }
  int calls = 0;
  timer_node node{fire, this};
};

TEST(timer_races, after_stop_sync_the_callback_has_run_once_or_never_will) {
  heap heaps[2];
  fake_clock clock;
  std::atomic<std::uint64_t> prevented{0}, called{0};
  crew c;
  for (int thread = 0; thread < 2; ++thread) {
    c.spawn([&, thread] {
      std::mt19937_64 random(static_cast<std::uint64_t>(thread));
      // Longer if the threads that run timers have not had a core yet.
      for (std::size_t i = 0; i < rounds || called.load(std::memory_order_relaxed) == 0; ++i) {
        on_stack timer;
        timers::add(heaps[random() % 2], timer.node, clock.now() + static_cast<std::int64_t>(random() % 16));
        for (auto pauses = random() % 64; pauses > 0; --pauses) clock.now();
        const bool stopped = timers::stop_sync(timer.node);
        ASSERT_EQ(timer.calls, stopped ? 0 : 1);
        (stopped ? prevented : called).fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (int i = 0; i < 2; ++i) {
    c.spawn_helper([&] {
      for (heap& h : heaps) h.run(clock.now());
    });
  }
  c.spawn_helper([&, from = 0]() mutable {
    timers::move_all(heaps[from], heaps[1 - from]);
    heaps[from].reopen();
    from = 1 - from;
    std::this_thread::yield();
  });
  c.finish();
  EXPECT_GT(prevented.load(), 0u);
}

TEST(timer_races, who_is_woken_by_the_callback_may_destroy_the_timer_at_once) {
  heap h;
  fake_clock clock;
  struct sleeper {
    static void fire(void* self, std::uint64_t, std::int64_t) noexcept {
      static_cast<sleeper*>(self)->awake.store(true, std::memory_order_release);
    }
    std::atomic<bool> awake{false};
    timer_node node{fire, this};
  };
  crew c;
  for (int thread = 0; thread < 2; ++thread) {
    c.spawn([&] {
      for (std::size_t i = 0; i < rounds / 10; ++i) {
        auto s = std::make_unique<sleeper>();
        timers::add(h, s->node, clock.now() + 4);
        while (!s->awake.load(std::memory_order_acquire)) std::this_thread::yield();
      }
    });
  }
  c.spawn_helper([&] {
    h.run(clock.now());
    std::this_thread::yield();
  });
}

TEST(timer_races, stop_sync_outlasts_a_callback_that_keeps_adding_its_own_timer) {
  heap heaps[2];
  fake_clock clock;
  struct stubborn {
    static void fire(void* self, std::uint64_t, std::int64_t) noexcept {
      auto& s = *static_cast<stubborn*>(self);
      ++s.calls;
      timers::add(s.heaps[s.calls % 2], s.node, s.clock.now());
      s.begun.store(true, std::memory_order_release);
      while (s.node.pending()) std::this_thread::yield();  // until stop_sync has stopped it; now once more:
      timers::add(s.heaps[s.calls % 2], s.node, s.clock.now());
    }
    heap* heaps;
    fake_clock& clock;
    int calls = 0;
    std::atomic<bool> begun{false};
    timer_node node{fire, this};
  };
  crew c;
  c.spawn([&] {
    for (std::size_t i = 0; i < rounds / 10; ++i) {
      stubborn s{heaps, clock};
      timers::add(heaps[i % 2], s.node, clock.now());
      while (!s.begun.load(std::memory_order_acquire)) std::this_thread::yield();
      ASSERT_TRUE(timers::stop_sync(s.node));
      ASSERT_GE(s.calls, 1);
      ASSERT_FALSE(s.node.pending());
    }
  });
  c.spawn_helper([&] {
    for (heap& h : heaps) h.run(clock.now());
    std::this_thread::yield();
  });
}

// ---- waiting for a callback ----------------------------------------------------------------------------------------

// A callback that is held inside until it is let go: longer than any real one.
struct held {
  static void fire(void* self, std::uint64_t, std::int64_t) noexcept {
    auto& s = *static_cast<held*>(self);
    s.inside.store(true, std::memory_order_release);
    while (!s.let_go.load(std::memory_order_acquire)) std::this_thread::yield();
    s.left = true;
  }
  void await_call() const {
    while (!inside.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  std::atomic<bool> inside{false}, let_go{false};
  bool left = false;
  timer_node node{fire, this};
};

TEST(timer_races, stop_does_not_wait_for_a_running_callback_and_stop_sync_does) {
  heap h;
  held s;
  timers::add(h, s.node, 1);
  std::thread runner([&] { h.run(1); });
  s.await_call();
  EXPECT_FALSE(timers::stop(s.node));
  std::thread releaser([&] { s.let_go.store(true, std::memory_order_release); });
  EXPECT_FALSE(timers::stop_sync(s.node));
  EXPECT_TRUE(s.left);
  releaser.join();
  runner.join();
}

TEST(timer_races, two_stop_syncs_stop_what_others_set_while_they_wait) {
  heap h;
  held s;
  timers::add(h, s.node, 1);
  std::thread runner([&] { h.run(1); });
  s.await_call();
  std::atomic<int> stopped{0};
  const auto stop = [&] { stopped += timers::stop_sync(s.node) ? 1 : 0; };
  std::thread first(stop), second(stop);
  // In the end one of these is refused: a deadline that is set is stopped at once, or by who begins to wait.
  timers::reset(s.node, 2);
  while (s.node.pending()) std::this_thread::yield();
  timers::reset(s.node, 3);
  s.let_go.store(true, std::memory_order_release);
  first.join();
  second.join();
  runner.join();
  EXPECT_GE(stopped, 1);
  EXPECT_FALSE(s.node.pending());
  EXPECT_EQ(h.run(3).count, 0u);
  timers::reset(s.node, 4);
  EXPECT_TRUE(s.node.pending()) << "nobody waits any more";
  EXPECT_TRUE(timers::stop(s.node));
}

TEST(timer_races, others_run_the_rest_while_a_callback_takes_long) {
  heap h;
  held s;
  on_stack other;
  timers::add(h, s.node, 1);
  std::thread runner([&] { h.run(1); });
  s.await_call();
  timers::add(h, other.node, 2);
  EXPECT_EQ(h.run(2).count, 1u);
  EXPECT_EQ(other.calls, 1);
  EXPECT_FALSE(timers::stop_sync(other.node)) << "it is over: nothing to wait for";
  s.let_go.store(true, std::memory_order_release);
  runner.join();
}

TEST(timer_races, stop_sync_waits_for_its_own_callback_and_not_for_the_rest_of_the_batch) {
  heap h;
  on_stack before;
  held s;
  timers::add(h, before.node, 1);
  timers::add(h, s.node, 2);
  std::thread runner([&] { h.run(2); });
  s.await_call();
  EXPECT_FALSE(timers::stop_sync(before.node));
  EXPECT_EQ(before.calls, 1);
  s.let_go.store(true, std::memory_order_release);
  runner.join();
}

TEST(timer_races, move_all_waits_for_the_callback_of_a_periodic_timer) {
  heap from, to;
  held s;
  timers::add(from, s.node, 1, 100);
  std::thread runner([&] { from.run(1); });
  s.await_call();
  std::thread mover([&] { timers::move_all(from, to); });
  // Meanwhile the timer can be stopped and reset as ever.
  EXPECT_TRUE(timers::reset(s.node, 1000, 100).was_pending);
  EXPECT_TRUE(to.empty());
  s.let_go.store(true, std::memory_order_release);
  mover.join();
  runner.join();
  EXPECT_EQ(to.next_when(), 1000);
  EXPECT_TRUE(timers::stop_sync(s.node));
}

// ---- looking without the lock --------------------------------------------------------------------------------------

// [timer.next]: of one who adds and then looks for sleepers, and one who says that it sleeps and then looks for timers,
// at least one sees the other.
TEST(timer_races, a_sleeper_sees_the_timer_or_whoever_adds_it_sees_the_sleeper) {
  for (std::size_t i = 0; i < rounds / 100; ++i) {
    heap h;
    on_stack timer;
    std::atomic<bool> asleep{false};
    std::atomic<int> ready{0};
    bool sleeper_saw = false, adder_saw = false;
    const auto line_up = [&] {
      ready.fetch_add(1, std::memory_order_acq_rel);
      while (ready.load(std::memory_order_acquire) != 2) std::this_thread::yield();
    };
    std::thread sleeper([&] {
      line_up();
      asleep.store(true, std::memory_order_seq_cst);
      sleeper_saw = h.next_when() != 0;
    });
    line_up();
    EXPECT_TRUE(timers::add(h, timer.node, 100).is_first);
    adder_saw = asleep.load(std::memory_order_seq_cst);
    sleeper.join();
    EXPECT_TRUE(sleeper_saw || adder_saw);
    timers::stop(timer.node);
  }
}

}  // namespace
