// What goes on after run() has returned: goroutines that are left stay where they are, whatever they do next; plain threads go on.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include "support/await.h"
#include "support/park.h"
#include "support/pipe.h"

namespace {

using namespace std::chrono_literals;

// A goroutine computes while run() ends, and then calls `next`. Nobody may go on for that, itself included.
void stays_frozen(const std::function<void()>& next) {
  std::atomic<bool> computing = false, go_on = false, passed = false, enough = false;
  std::atomic<std::uint64_t> turns = 0;
  weft::run(
      [&] {
        weft::go([&] {
          computing = true;
          test::spin_until([&] { return go_on.load(); });
          next();
          passed = true;
        });
        weft::go([&] {
          for (; !enough; weft::yield()) ++turns;
        });
        test::await([&] { return computing.load() && turns.load() > 0; });
      },
      {.procs = 2});
  const std::uint64_t before = turns + 1;  // it may be between two calls just now, and count once more
  go_on = true;
  EXPECT_TRUE(test::stays_false(50ms, [&] { return passed.load() || turns.load() > before; }));
  weft::run(
      [&] {
        test::await([&] { return passed.load() && turns.load() > before; });
        enough = true;
        test::await_solitude();
      },
      {.procs = 2});
}

TEST(frozen_goroutine, that_asks_for_a_time_stays_frozen) {
  stays_frozen([] { (void)weft::after(1h); });
}
TEST(frozen_goroutine, that_starts_a_timer_stays_frozen) {
  stays_frozen([] { weft::after_func(1h, [] {}).stop(); });
}
TEST(frozen_goroutine, that_resets_a_timer_stays_frozen) {
  weft::timer t = weft::after_func(1h, [] {});
  stays_frozen([&] { t.reset(2h); });
  t.stop();
}
TEST(frozen_goroutine, that_makes_a_context_with_a_timeout_stays_frozen) {
  stays_frozen([] { weft::with_timeout(weft::background(), 1h).second(); });
}
TEST(frozen_goroutine, that_spawns_stays_frozen) {
  stays_frozen([] { weft::async([] {}).get(); });
}

// A goroutine that goes on and on, but for the end of run().
class left_running {
 public:
  left_running() {
    weft::run(
        [this] {
          weft::go([this] {
            for (; !enough_; weft::yield()) ++turns_;
          });
          test::await([this] { return turns_.load() > 0; });
        },
        {.procs = 2});
    most_ = turns_ + 1;  // it may be between two calls just now, and count once more
  }
  ~left_running() {
    enough_ = true;
    weft::run([] { test::await_solitude(); });
  }
  bool stays_frozen() const {
    return test::stays_false(20ms, [this] { return turns_.load() > most_; });
  }

 private:
  std::atomic<std::uint64_t> turns_ = 0;
  std::uint64_t most_ = 0;
  std::atomic<bool> enough_ = false;
};

using pipe_ends = test::nonblocking_pipe;

// Sockets and pipes are not the goroutines' alone.
TEST(plain_thread, that_waits_for_a_descriptor_leaves_goroutines_frozen) {
  left_running goroutine;
  const pipe_ends p;
  std::thread writes([&] {
    std::this_thread::sleep_for(5ms);
    p.write();
  });
  weft::pollable(p.in).wait_readable();
  writes.join();
  EXPECT_TRUE(goroutine.stays_frozen());
}

TEST(plain_thread, that_dials_leaves_goroutines_frozen) {
  left_running goroutine;
  weft::net::listener listener = weft::net::listen_tcp("127.0.0.1:0");
  weft::net::conn c = weft::net::dial_tcp(":" + std::to_string(listener.local_address().port()), {.timeout = 20s});
  listener.accept().write("x");
  char byte = 0;
  EXPECT_EQ(c.read(std::span(&byte, 1)), 1u);
  EXPECT_TRUE(goroutine.stays_frozen());
}

// The last that run()'s goroutine does is to wait for a descriptor, so that nobody is left who does.
TEST(plain_thread, that_waits_for_a_descriptor_is_woken_after_the_end_of_run) {
  for (int round = 0; round < 10; ++round) {
    const pipe_ends theirs, ours;
    std::thread waits, writes;
    weft::run(
        [&] {
          std::atomic<bool> about_to = false;
          waits = std::thread([&] {
            weft::pollable p(theirs.in);
            about_to = true;
            p.wait_readable();
          });
          test::await([&] { return about_to.load(); });
          writes = std::thread([&] {
            std::this_thread::sleep_for(10ms);  // most likely both wait by then; if not, so much the better for the runtime
            ours.write();
          });
          weft::pollable(ours.in).wait_readable();
        },
        {.procs = 1});
    writes.join();
    theirs.write();
    waits.join();
  }
}

// A goroutine stands in the line for a lock when run() ends.
template <class Lock>
void leaves_a_goroutine_in_line(Lock& lock) {
  lock.lock();
  weft::run(
      [&] {
        weft::go([&] {
          lock.lock();
          lock.unlock();
        });
        test::await([] { return test::waiting_goroutines() > 0; });
      },
      {.procs = 1});
}

template <class Lock>
void passes_frozen_goroutines_by() {
  Lock lock;
  leaves_a_goroutine_in_line(lock);
  for (int i = 0; i < 3; ++i) {
    std::atomic<bool> about_to = false;
    std::thread next([&] {
      about_to = true;
      lock.lock();
      lock.unlock();
    });
    test::await([&] { return about_to.load(); });
    std::this_thread::sleep_for(5ms);  // most likely it waits by then
    lock.unlock();
    next.join();
    lock.lock();
  }
  lock.unlock();
  weft::run([] { test::await_solitude(); });
}

TEST(frozen_goroutine, that_waits_for_a_mutex_lets_threads_pass) { passes_frozen_goroutines_by<weft::mutex>(); }
TEST(frozen_goroutine, that_waits_for_a_shared_mutex_lets_threads_pass) { passes_frozen_goroutines_by<weft::shared_mutex>(); }

// A goroutine that comes to the end of its move after run() makes nobody's move in which it might freeze.
TEST(frozen_goroutine, leaves_a_threads_move_to_the_thread) {
  static std::atomic<bool> in_move, go_on;
  in_move = go_on = false;
  struct item {
    int kind = 0;
    explicit item(int k = 0) : kind(k) {}
    item(item&& o) noexcept : kind(o.kind) {
      if (kind == 1 && !in_move.exchange(true)) test::spin_until([] { return go_on.load(); });
      if (kind == 2) weft::yield();
    }
    item& operator=(item&&) = default;
  };
  weft::chan<item> ch(1);
  weft::run(
      [&] {
        weft::go([ch] { ch.send(item(1)); });
        test::await([] { return in_move.load(); });
      },
      {.procs = 2});
  std::thread receives([&] { (void)ch.recv(); });
  std::this_thread::sleep_for(5ms);  // behind the goroutine, most likely
  std::thread sends([&] { ch.send(item(2)); });
  std::this_thread::sleep_for(5ms);
  go_on = true;
  receives.join();
  sends.join();
  weft::run([] { test::await_solitude(); });
}

// Who cancels freezes between two callbacks at most, when all have been told.
TEST(frozen_goroutine, that_has_begun_to_cancel_tells_everybody) {
  std::atomic<bool> in_callback = false, go_on = false;
  auto root = weft::with_timeout(weft::background(), 1h);
  auto child = weft::with_cancel(root.first);
  const std::stop_token told = child.first.token();
  {
    const std::stop_callback on_root(root.first.token(), [&] {
      in_callback = true;
      test::spin_until([&] { return go_on.load(); });
    });
    weft::run(
        [&] {
          weft::go([&] { root.second(); });
          test::await([&] { return in_callback.load(); });
        },
        {.procs = 2});
    go_on = true;
    test::spin_until([&] { return told.stop_requested(); });
  }
  EXPECT_TRUE(child.first.error());
  weft::run([] { test::await_solitude(); });
}

}  // namespace
