// The runtime's own lock, and the order in which locks may be taken.
#include "base/lock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/build.h"

namespace {

using weft::base::lock_guard;
using weft::base::lock_rank;
using weft::base::mutex;

constexpr int thread_count = 8;

template <class Body>
void on_all_threads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) threads.emplace_back(body);
  for (std::thread& t : threads) t.join();
}

TEST(a_lock, lets_one_thread_in_at_a_time) {
  const long rounds = test::scaled(50'000, 20'000, 5'000);
  mutex m(lock_rank::leaf);
  long guarded = 0;  // not atomic: only the lock keeps the threads apart
  on_all_threads([&] {
    for (long i = 0; i < rounds; ++i) {
      lock_guard guard(m);
      ++guarded;
    }
  });
  EXPECT_EQ(guarded, thread_count * rounds);
}

// The holder gives up its core, so that the others come to sleep on the futex.
TEST(a_lock, wakes_those_who_sleep_for_it) {
  constexpr int rounds = 500;
  mutex m(lock_rank::leaf);
  std::atomic<int> inside = 0;
  int most = 0;
  int entered = 0;
  on_all_threads([&] {
    for (int i = 0; i < rounds; ++i) {
      lock_guard guard(m);
      most = std::max(most, ++inside);
      std::this_thread::yield();
      ++entered;
      --inside;
    }
  });
  EXPECT_EQ(most, 1);
  EXPECT_EQ(entered, thread_count * rounds);
}

TEST(a_lock, shows_what_its_former_holder_wrote) {
  mutex m(lock_rank::leaf);
  int a = 0;
  int b = 0;
  std::atomic<int> torn = 0;
  on_all_threads([&] {
    for (int i = 0; i < 2000; ++i) {
      lock_guard guard(m);
      if (a != b) ++torn;
      ++a;
      ++b;
    }
  });
  EXPECT_EQ(torn, 0);
}

// The same lock, kept from clang's analysis: what follows is what it would not let anyone write.
class unwatched {
 public:
  explicit unwatched(lock_rank rank) : lock_(rank) {}
  void lock() WEFT_NO_LOCK_ANALYSIS { lock_.lock(); }
  bool try_lock() WEFT_NO_LOCK_ANALYSIS { return lock_.try_lock(); }
  void unlock() WEFT_NO_LOCK_ANALYSIS { lock_.unlock(); }

 private:
  mutex lock_;
};

using unwatched_guard = std::lock_guard<unwatched>;

TEST(try_lock, fails_while_another_thread_holds_the_lock) {
  unwatched m(lock_rank::leaf);
  m.lock();
  bool got_it = true;
  std::thread([&] { got_it = m.try_lock(); }).join();
  EXPECT_FALSE(got_it);
  m.unlock();
}

TEST(try_lock, takes_a_free_lock) {
  unwatched m(lock_rank::leaf);
  ASSERT_TRUE(m.try_lock());
  EXPECT_FALSE(m.try_lock());
  m.unlock();
  ASSERT_TRUE(m.try_lock());
  m.unlock();
}

TEST(try_lock, lets_one_thread_in_at_a_time) {
  const int rounds = static_cast<int>(test::scaled(2'000, 1'000, 500));
  unwatched m(lock_rank::leaf);
  long guarded = 0;
  on_all_threads([&] {
    for (int i = 0; i < rounds;) {
      if (!m.try_lock()) {
        std::this_thread::yield();
        continue;
      }
      ++guarded;
      m.unlock();
      ++i;
    }
  });
  EXPECT_EQ(guarded, long{thread_count} * rounds);
}

// ---- ranks ----------------------------------------------------------------------------------------------------------

std::string number(lock_rank rank) { return std::to_string(static_cast<int>(rank)); }

std::string wrong_order(lock_rank taken, lock_rank held) {
  return "fatal error: lock rank " + number(taken) + " taken while rank " + number(held) + " is held";
}

class lock_ranks : public testing::Test {
 protected:
  void SetUp() override {
#ifndef WEFT_DEBUG_CHECKS
    GTEST_SKIP() << "ranks are checked in builds with WEFT_DEBUG_CHECKS";
#endif
  }
};

TEST_F(lock_ranks, allow_locks_further_down_the_list) {
  unwatched timers(lock_rank::timers);
  unwatched sched(lock_rank::sched);
  unwatched stacks(lock_rank::stacks);
  unwatched_guard first(timers);
  unwatched_guard second(sched);
  unwatched_guard third(stacks);
}

TEST_F(lock_ranks, make_the_wrong_order_fatal) {
  unwatched sched(lock_rank::sched);
  unwatched stacks(lock_rank::stacks);
  EXPECT_DEATH(
      {
        unwatched_guard first(stacks);
        unwatched_guard second(sched);
      },
      wrong_order(lock_rank::sched, lock_rank::stacks));
}

TEST_F(lock_ranks, make_a_second_lock_of_the_same_rank_fatal) {
  unwatched one(lock_rank::sched);
  unwatched other(lock_rank::sched);
  EXPECT_DEATH(
      {
        unwatched_guard first(one);
        unwatched_guard second(other);
      },
      wrong_order(lock_rank::sched, lock_rank::sched));
}

TEST_F(lock_ranks, allow_several_wait_queues_and_several_timer_heaps) {
  for (const lock_rank rank : {lock_rank::wait_queue, lock_rank::timers}) {
    unwatched one(rank);
    unwatched other(rank);
    unwatched_guard first(one);
    unwatched_guard second(other);
  }
}

TEST_F(lock_ranks, do_not_bind_a_lock_that_is_only_tried) {
  unwatched sched(lock_rank::sched);
  unwatched stacks(lock_rank::stacks);
  unwatched_guard first(stacks);
  ASSERT_TRUE(sched.try_lock());
  sched.unlock();
}

TEST_F(lock_ranks, bind_again_what_is_held_after_others_were_released_in_any_order) {
  unwatched timers(lock_rank::timers);
  unwatched sched(lock_rank::sched);
  unwatched stacks(lock_rank::stacks);
  timers.lock();
  sched.lock();
  stacks.lock();
  sched.unlock();
  stacks.unlock();
  sched.lock();  // only `timers` is held: allowed again
  sched.unlock();
  EXPECT_DEATH(unwatched(lock_rank::wait_queue).lock(), wrong_order(lock_rank::wait_queue, lock_rank::timers));
  timers.unlock();
}

TEST_F(lock_ranks, are_each_threads_own) {
  unwatched stacks(lock_rank::stacks);
  unwatched sched(lock_rank::sched);
  unwatched_guard here(stacks);
  std::thread([&] { unwatched_guard there(sched); }).join();
}

TEST_F(lock_ranks, make_the_release_of_a_lock_that_this_thread_does_not_hold_fatal) {
  unwatched m(lock_rank::sched);
  EXPECT_DEATH(m.unlock(), "fatal error: a lock of rank " + number(lock_rank::sched) +
                               " is released by a thread that does not hold it");
}

}  // namespace
