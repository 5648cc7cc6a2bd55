// All synchronization primitives at once: goroutines and plain threads take random ones in random order, with
// deadlines, stop requests and destruction, on 1 to 16 Ps, for as long as the environment says:
//
//   WEFT_STRESS_SECONDS=N   in all (3 if not set)
//   WEFT_SOAK=1             120 seconds
//   WEFT_STRESS_SEED=N      repeats the decisions (not the interleavings) of the run that printed this seed
//
// Each primitive guards or counts something that is not atomic, or is accounted for at the end of the round. If nothing
// is done for a minute, the watchdog says what was going on and aborts.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/build.h"
#include "support/stress.h"

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using test::progress;
using test::random_source;

std::atomic<int> procs_now = 0;

void say_what_is_going_on() {
  const auto s = weft::runtime::read_sched_stats();
  std::fprintf(stderr,
               "hung with %d Ps after %" PRIu64 " steps, seed %" PRIu64 ": %zu goroutines, %" PRIu64
               " in the global queue, %d of %d Ps idle, %d spinning\n",
               procs_now.load(), progress.load(), test::stress_seed(), weft::runtime::num_goroutine(), s.global_queue,
               s.idle_procs, s.procs, s.spinning_threads);
}

void pause_somehow(random_source& random) {
  switch (random.below(16)) {
    case 0:
      weft::sleep_for(random.microseconds(50));
      break;
    case 1:
    case 2:
      weft::yield();
      break;
    default:
      break;
  }
}

// ---- the members of a round ----

struct world {
  weft::mutex mutex;
  long by_mutex = 0;
  weft::timed_mutex timed;
  long by_timed = 0;
  weft::recursive_mutex recursive;
  long by_recursive = 0;
  weft::shared_mutex shared;
  long by_shared = 0, by_shared_copy = 0;

  static constexpr int permits = 3;
  weft::counting_semaphore<permits> semaphore{permits};
  std::atomic<int> holders = 0;

  weft::mutex queue_lock;
  weft::condition_variable queue_changed;
  int queued = 0;
  std::atomic<long> put = 0, got = 0;

  weft::pool<std::pair<std::atomic<int>, long>> pool{
      [] { return std::make_unique<std::pair<std::atomic<int>, long>>(); }};
  weft::goroutine_local<long> local;

  std::atomic<long> mutex_ops = 0, timed_ops = 0, recursive_ops = 0, shared_ops = 0;
};

void lock_mutex(world& w, random_source& random) {
  if (random.one_in(4)) {
    if (!w.mutex.try_lock()) return;
  } else {
    w.mutex.lock();
  }
  ++w.by_mutex;
  if (random.one_in(8)) pause_somehow(random);
  w.mutex.unlock();
  ++w.mutex_ops;
}

void lock_timed(world& w, random_source& random) {
  if (random.one_in(3)) {
    w.timed.lock();
  } else if (!w.timed.try_lock_for(random.microseconds(100))) {
    return;
  }
  ++w.by_timed;
  if (random.one_in(8)) pause_somehow(random);
  w.timed.unlock();
  ++w.timed_ops;
}

void lock_recursive(world& w, random_source& random) {
  std::lock_guard outer(w.recursive);
  ++w.by_recursive;
  pause_somehow(random);
  std::lock_guard inner(w.recursive);
  ++w.recursive_ops;
}

void lock_shared(world& w, random_source& random) {
  if (random.one_in(3)) {
    std::unique_lock guard(w.shared);
    ++w.by_shared;
    if (random.one_in(4)) pause_somehow(random);
    ++w.by_shared_copy;
    ++w.shared_ops;
  } else {
    std::shared_lock guard(w.shared, std::defer_lock);
    if (random.one_in(3)) {
      if (!guard.try_lock()) return;
    } else {
      guard.lock();
    }
    const long seen = w.by_shared;
    if (random.one_in(4)) pause_somehow(random);
    EXPECT_EQ(w.by_shared, seen);
    EXPECT_EQ(w.by_shared_copy, seen);
  }
}

void take_permit(world& w, random_source& random) {
  if (random.one_in(2)) {
    w.semaphore.acquire();
  } else if (!w.semaphore.try_acquire_for(random.microseconds(100))) {
    return;
  }
  EXPECT_LE(++w.holders, world::permits);
  pause_somehow(random);
  --w.holders;
  w.semaphore.release();
}

void put_or_get(world& w, random_source& random) {
  if (random.one_in(2)) {
    {
      std::lock_guard guard(w.queue_lock);
      ++w.queued;
    }
    ++w.put;
    w.queue_changed.notify_one();
    return;
  }
  std::unique_lock lock(w.queue_lock);
  const auto not_empty = [&] { return w.queued > 0; };
  bool mine = false;
  if (random.one_in(2)) {
    mine = w.queue_changed.wait_for(lock, random.microseconds(100), not_empty);
  } else {
    std::stop_source stop;
    std::optional<std::thread> by_thread;
    auto request = [stop]() mutable { stop.request_stop(); };
    if (random.one_in(64)) {
      by_thread.emplace(request);
    } else {
      weft::go(request);
    }
    mine = random.one_in(2) ? w.queue_changed.wait(lock, stop.get_token(), not_empty)
                            : w.queue_changed.wait_for(lock, stop.get_token(), random.microseconds(100), not_empty);
    if (mine) --w.queued;
    lock.unlock();
    if (by_thread) by_thread->join();
    w.got += mine;
    return;
  }
  if (mine) --w.queued;
  w.got += mine;
}

void use_pool(world& w, random_source& random) {
  auto a = w.pool.get();
  EXPECT_EQ(a->first.fetch_add(1), 0);
  ++a->second;
  pause_somehow(random);
  a->first.fetch_sub(1);
  w.pool.put(std::move(a));
}

void use_local(world& w, random_source& random) {
  const long before = *w.local;
  pause_somehow(random);
  EXPECT_EQ(*w.local, before);
  ++*w.local;
}

// ---- what lives only for a moment: made, waited for, destroyed ----

void fork_and_join(random_source& random) {
  const int n = static_cast<int>(random.below(6)) + 1;
  std::array<int, 6> done{};
  const auto body = [&done](int i) { return [&done, i] { done[static_cast<std::size_t>(i)] = 1; }; };
  switch (random.below(5)) {
    case 0: {
      auto wg = std::make_unique<weft::wait_group>();
      for (int i = 0; i < n; ++i) wg->go(body(i));
      wg->wait();
      break;
    }
    case 1: {
      auto l = std::make_unique<weft::latch>(n);
      for (int i = 0; i < n; ++i) {
        weft::go([f = body(i), l = l.get()] {
          f();
          l->count_down();
        });
      }
      l->wait();
      break;
    }
    case 2: {
      auto g = std::make_unique<weft::group>();
      if (random.one_in(2)) g->set_limit(static_cast<int>(random.below(3)) + 1);
      for (int i = 0; i < n; ++i) g->go(body(i));
      const bool fails = random.one_in(2);
      if (fails) g->go([](const std::stop_token&) { throw 1; });
      try {
        g->wait();
        EXPECT_FALSE(fails);
      } catch (int) {
        EXPECT_TRUE(fails);
      }
      break;
    }
    case 3: {
      auto s = std::make_unique<weft::counting_semaphore<>>(0);
      for (int i = 0; i < n; ++i) {
        weft::go([f = body(i), s = s.get()] {
          f();
          s->release();
        });
      }
      for (int i = 0; i < n; ++i) s->acquire();
      break;
    }
    default: {
      auto b = std::make_unique<weft::barrier<>>(n + 1);
      for (int i = 0; i < n; ++i) {
        weft::go([f = body(i), b = b.get()] {
          f();
          static_cast<void>(b->arrive());
        });
      }
      b->arrive_and_wait();
      break;
    }
  }
  for (int i = 0; i < n; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], 1);
}

void meet_once(random_source& random) {
  auto flag = std::make_unique<weft::once_flag>();
  int value = 0;
  weft::wait_group all;
  const std::uint32_t failures = random.below(3);
  std::atomic<std::uint32_t> calls = 0;
  for (int i = 0; i < 4; ++i) {
    all.go([&] {
      for (;;) {
        try {
          weft::call_once(*flag, [&] {
            if (calls++ < failures) throw 1;
            ++value;
          });
          break;
        } catch (int) {
        }
      }
      EXPECT_EQ(value, 1);
    });
  }
  all.wait();
}

void member(world& w, std::uint64_t member_seed, int turns) {
  random_source random(member_seed);
  for (int i = 0; i < turns; ++i) {
    switch (random.below(11)) {
      case 0:
      case 1:
        lock_mutex(w, random);
        break;
      case 2:
        lock_timed(w, random);
        break;
      case 3:
        lock_recursive(w, random);
        break;
      case 4:
        lock_shared(w, random);
        break;
      case 5:
        take_permit(w, random);
        break;
      case 6:
        put_or_get(w, random);
        break;
      case 7:
        use_pool(w, random);
        break;
      case 8:
        use_local(w, random);
        break;
      case 9:
        fork_and_join(random);
        break;
      default:
        meet_once(random);
        break;
    }
    ++progress;
    pause_somehow(random);
  }
}

void round_of(random_source& random) {
  const int members = static_cast<int>(random.below(24)) + 2;
  const int threads = static_cast<int>(random.below(4));
  const int turns = static_cast<int>(test::scaled(400, 100, 60));
  auto w = std::make_unique<world>();
  weft::wait_group all;
  std::vector<std::thread> outside;
  const auto base = (std::uint64_t{random.below(1u << 31)} << 20);
  for (int i = 0; i < members; ++i) all.go([&, i] { member(*w, base + static_cast<std::uint64_t>(i), turns); });
  all.add(threads);
  for (int i = 0; i < threads; ++i) {
    outside.emplace_back([&, i] {
      member(*w, base + 1000 + static_cast<std::uint64_t>(i), turns);
      all.done();
    });
  }
  all.wait();
  for (std::thread& t : outside) t.join();

  EXPECT_EQ(w->by_mutex, w->mutex_ops.load());
  EXPECT_EQ(w->by_timed, w->timed_ops.load());
  EXPECT_EQ(w->by_recursive, w->recursive_ops.load());
  EXPECT_EQ(w->by_shared, w->shared_ops.load());
  EXPECT_EQ(w->put.load(), w->got.load() + w->queued);
  for (int i = 0; i < world::permits; ++i) EXPECT_TRUE(w->semaphore.try_acquire());
  EXPECT_FALSE(w->semaphore.try_acquire());
  EXPECT_TRUE(w->mutex.try_lock());
  w->mutex.unlock();
  EXPECT_TRUE(w->timed.try_lock());
  w->timed.unlock();
  EXPECT_TRUE(w->shared.try_lock());
  w->shared.unlock();
}

TEST(sync_stress, every_lock_excludes_and_every_wait_ends) {
  std::printf("WEFT_STRESS_SEED=%" PRIu64 "\n", test::stress_seed());
  const test::watchdog dog(say_what_is_going_on);
  random_source random(test::stress_seed());
  const auto end = clock::now() + test::stress_duration();
  constexpr int sizes[] = {1, 2, 8, 3, 16};
  int rounds = 0;
  do {
    procs_now = sizes[rounds++ % 5];
    weft::run([&] { round_of(random); }, {.procs = procs_now});
    if (testing::Test::HasFailure()) break;
  } while (clock::now() < end);
  std::printf("%d rounds, %" PRIu64 " steps\n", rounds, progress.load());
}

}  // namespace
