// condition_variable: std's, with the stop_token forms of condition_variable_any, for goroutines and plain threads.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stop_token>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using lock = std::unique_lock<weft::mutex>;

static_assert(!std::is_copy_constructible_v<weft::condition_variable>);

class condition_variable : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, condition_variable, test::everywhere(), test::name_of);

TEST_P(condition_variable, wait_unlocks_while_it_waits_and_locks_again) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    bool go = false;
    test::crew crew;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&] {
        lock l(m);
        while (!go) cv.wait(l);
        EXPECT_TRUE(l.owns_lock());
        EXPECT_FALSE(m.try_lock());
      });
    }
    weft::yield();
    {
      lock l(m);
      go = true;
    }
    cv.notify_all();
  });
}

TEST_P(condition_variable, a_wait_without_the_lock_is_a_logic_error_and_nothing_else) {
  here([] {
    weft::mutex m;
    auto cv = std::make_unique<weft::condition_variable>();
    lock l(m, std::defer_lock);
    EXPECT_THROW(cv->wait(l), std::logic_error);
    EXPECT_THROW(cv->wait_for(l, 1s), std::logic_error);
    EXPECT_THROW(cv->wait(l, std::stop_token(), [] { return false; }), std::logic_error);
    cv->notify_all();
    l.lock();
    EXPECT_EQ(cv->wait_for(l, 1ms), std::cv_status::timeout);
    cv.reset();
  });
}

struct lock_that_fails {
  void lock() {}
  void unlock() { throw std::runtime_error("stuck"); }
};

TEST_P(condition_variable, nobody_waits_whose_lock_could_not_be_unlocked) {
  here([] {
    auto cv = std::make_unique<weft::condition_variable>();
    lock_that_fails l;
    std::stop_source stop;
    EXPECT_THROW(cv->wait(l), std::runtime_error);
    EXPECT_THROW(cv->wait(l, stop.get_token(), [] { return false; }), std::runtime_error);
    cv->notify_all();
    cv.reset();
  });
}

TEST_P(condition_variable, a_notification_is_for_those_that_wait_and_is_not_remembered) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    cv.notify_one();
    cv.notify_all();
    lock l(m);
    EXPECT_EQ(cv.wait_for(l, 2ms), std::cv_status::timeout);
  });
}

TEST_P(condition_variable, hands_every_item_of_a_queue_to_one_consumer) {
  here([] {
    weft::mutex m;
    weft::condition_variable not_empty, not_full;
    std::deque<int> queue;
    const int each = static_cast<int>(test::scaled(2000, 400, 200));
    constexpr int producers = 3, consumers = 3;
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(producers * each));
    {
      test::crew crew;
      for (int p = 0; p < producers; ++p) {
        crew.either(p, [&, p] {
          for (int k = 0; k < each; ++k) {
            lock l(m);
            not_full.wait(l, [&] { return queue.size() < 4; });
            queue.push_back(p * each + k);
            not_empty.notify_one();
          }
        });
      }
      for (int c = 0; c < consumers; ++c) {
        crew.either(c, [&] {
          for (int k = 0; k < each; ++k) {
            lock l(m);
            not_empty.wait(l, [&] { return !queue.empty(); });
            ++seen[static_cast<std::size_t>(queue.front())];
            queue.pop_front();
            l.unlock();
            not_full.notify_one();
          }
        });
      }
    }
    for (auto& n : seen) EXPECT_EQ(n.load(), 1);
  });
}

TEST(condition_variable_queue, notify_one_wakes_the_longest_waiter) {
  weft::run(
      [] {
        weft::mutex m;
        weft::condition_variable cv;
        std::vector<int> order;
        std::atomic<int> awake = 0;
        weft::wait_group all;
        for (int i = 0; i < 10; ++i) {
          const auto before = test::parks();
          all.go([&, i] {
            lock l(m);
            if (i % 3 == 0) {
              EXPECT_EQ(cv.wait_for(l, 1h), std::cv_status::no_timeout);
            } else {
              cv.wait(l);
            }
            order.push_back(i);
            ++awake;
          });
          test::await_parks(before + 1);
        }
        for (int i = 0; i < 10; ++i) {
          cv.notify_one();
          test::await([&] { return awake == i + 1; });
        }
        all.wait();
        for (int i = 0; i < 10; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
      },
      {.procs = 1});
}

TEST(condition_variable_queue, notify_one_wakes_one) {
  weft::run(
      [] {
        weft::mutex m;
        weft::condition_variable cv;
        std::atomic<int> awake = 0;
        weft::wait_group all;
        const auto before = test::parks();
        for (int i = 0; i < 5; ++i) {
          all.go([&] {
            lock l(m);
            cv.wait(l);
            ++awake;
          });
        }
        test::await_parks(before + 5);
        cv.notify_one();
        test::await([&] { return awake > 0; });
        for (int i = 0; i < 100; ++i) weft::yield();
        EXPECT_EQ(awake, 1);
        cv.notify_all();
        all.wait();
        EXPECT_EQ(awake, 5);
      },
      {.procs = 1});
}

// ---- time ----

TEST_P(condition_variable, timed_waits_end_when_their_time_comes) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    lock l(m);
    auto began = steady_clock::now();
    EXPECT_EQ(cv.wait_for(l, 3ms), std::cv_status::timeout);
    EXPECT_GE(steady_clock::now() - began, 3ms);
    EXPECT_TRUE(l.owns_lock());
    EXPECT_EQ(cv.wait_until(l, steady_clock::now() + 2ms), std::cv_status::timeout);
    EXPECT_EQ(cv.wait_until(l, system_clock::now() + 2ms), std::cv_status::timeout);
    EXPECT_EQ(cv.wait_for(l, -1s), std::cv_status::timeout);
    EXPECT_EQ(cv.wait_until(l, steady_clock::now() - 1s), std::cv_status::timeout);
    began = steady_clock::now();
    EXPECT_FALSE(cv.wait_for(l, 3ms, [] { return false; }));
    EXPECT_GE(steady_clock::now() - began, 3ms);
    EXPECT_TRUE(cv.wait_for(l, 0ms, [] { return true; }));
    EXPECT_FALSE(cv.wait_until(l, system_clock::now() + 2ms, [] { return false; }));
    EXPECT_TRUE(cv.wait_until(l, steady_clock::now(), [] { return true; }));
    // The predicate is asked once more when time is up.
    int asked = 0;
    EXPECT_TRUE(cv.wait_for(l, 1ms, [&] { return ++asked == 2; }));
  });
}

TEST_P(condition_variable, timed_waits_end_early_when_notified) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    bool go = false;
    test::crew crew;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&, i] {
        lock l(m);
        if (i < 2) {
          EXPECT_TRUE(cv.wait_for(l, 1h, [&] { return go; }));
        } else {
          EXPECT_TRUE(cv.wait_until(l, system_clock::now() + 1h, [&] { return go; }));
        }
      });
    }
    weft::sleep_for(1ms);
    {
      lock l(m);
      go = true;
    }
    cv.notify_all();
  });
}

// A notify_one() goes to somebody who still waits, not to one who has given up: every item finds a consumer.
TEST_P(condition_variable, no_notification_is_lost_on_those_whose_time_was_up) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    const int items = static_cast<int>(test::scaled(1000, 200, 150));
    int available = 0;
    std::atomic<int> taken = 0;
    test::crew crew;
    for (int i = 0; i < 3; ++i) {
      crew.either(i, [&, i] {  // impatient: they come and go, and take nothing
        std::minstd_rand random(static_cast<unsigned>(i + 1));
        while (taken < items) {
          lock l(m);
          if (cv.wait_for(l, std::chrono::microseconds(random() % 20)) == std::cv_status::no_timeout) cv.notify_one();
        }
      });
    }
    crew.goroutine([&] {
      while (taken < items) {
        lock l(m);
        cv.wait(l, [&] { return available > 0; });
        --available;
        ++taken;
      }
    });
    for (int i = 0; i < items; ++i) {
      {
        lock l(m);
        ++available;
      }
      cv.notify_one();
      test::await([&] { return taken.load() == i + 1; });
    }
  });
}

// ---- stop tokens ----

TEST_P(condition_variable, a_stop_that_was_requested_before_ends_the_wait_at_once) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    std::stop_source stop;
    stop.request_stop();
    lock l(m);
    EXPECT_FALSE(cv.wait(l, stop.get_token(), [] { return false; }));
    EXPECT_TRUE(cv.wait(l, stop.get_token(), [] { return true; }));
    EXPECT_FALSE(cv.wait_for(l, stop.get_token(), 1h, [] { return false; }));
    EXPECT_FALSE(cv.wait_until(l, stop.get_token(), steady_clock::now() + 1h, [] { return false; }));
    EXPECT_TRUE(l.owns_lock());
  });
}

TEST_P(condition_variable, a_stop_request_ends_the_waits_with_its_token) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    std::stop_source stop;
    std::atomic<int> stopped = 0;
    test::crew crew;
    for (int i = 0; i < 6; ++i) {
      crew.either(i, [&, i] {
        lock l(m);
        const auto never = [] { return false; };
        if (i < 2) {
          EXPECT_FALSE(cv.wait(l, stop.get_token(), never));
        } else if (i < 4) {
          EXPECT_FALSE(cv.wait_for(l, stop.get_token(), 1h, never));
        } else {
          EXPECT_FALSE(cv.wait_until(l, stop.get_token(), system_clock::now() + 1h, never));
        }
        EXPECT_TRUE(l.owns_lock());
        ++stopped;
      });
    }
    weft::sleep_for(1ms);
    EXPECT_EQ(stopped.load(), 0);
    stop.request_stop();
  });
}

TEST(condition_variable_queue, a_stop_request_wakes_nobody_else) {
  weft::run(
      [] {
        weft::mutex m;
        weft::condition_variable cv;
        std::stop_source stop;
        std::atomic<int> stopped = 0, notified = 0;
        weft::wait_group all;
        const auto before = test::parks();
        for (int i = 0; i < 6; ++i) {
          all.go([&, i] {
            lock l(m);
            if (i % 2 == 0) {
              EXPECT_FALSE(cv.wait(l, stop.get_token(), [] { return false; }));
              ++stopped;
            } else {
              cv.wait(l);
              ++notified;
            }
          });
        }
        test::await_parks(before + 6);
        stop.request_stop();
        test::await([&] { return stopped >= 3; });
        for (int i = 0; i < 100; ++i) weft::yield();
        EXPECT_EQ(stopped, 3);
        EXPECT_EQ(notified, 0);
        cv.notify_all();
        all.wait();
      },
      {.procs = 1});
}

TEST_P(condition_variable, waits_with_a_token_end_by_notification_and_by_time_too) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    std::stop_source stop;
    bool go = false;
    {
      lock l(m);
      EXPECT_FALSE(cv.wait_for(l, stop.get_token(), 2ms, [] { return false; }));
      EXPECT_FALSE(cv.wait_until(l, stop.get_token(), system_clock::now() + 2ms, [] { return false; }));
      EXPECT_FALSE(cv.wait_for(l, std::stop_token(), 1ms, [] { return false; }));  // one that can never be stopped
    }
    test::crew crew;
    crew.goroutine([&] {
      lock l(m);
      EXPECT_TRUE(cv.wait(l, stop.get_token(), [&] { return go; }));
    });
    crew.thread([&] {
      lock l(m);
      EXPECT_TRUE(cv.wait_for(l, stop.get_token(), 1h, [&] { return go; }));
    });
    weft::sleep_for(1ms);
    {
      lock l(m);
      go = true;
    }
    cv.notify_all();
  });
}

TEST_P(condition_variable, no_stop_request_is_lost_whenever_it_comes) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    const int rounds = static_cast<int>(test::scaled(500, 150, 100));
    for (int i = 0; i < rounds; ++i) {
      std::stop_source stop;
      std::atomic<bool> begun = false;
      test::crew crew;
      crew.either(i % 8 == 1, [&] {
        lock l(m);
        begun = true;
        if (i % 3 == 0) {
          EXPECT_FALSE(cv.wait_for(l, stop.get_token(), 1h, [] { return false; }));
        } else {
          EXPECT_FALSE(cv.wait(l, stop.get_token(), [] { return false; }));
        }
      });
      crew.goroutine([&] { cv.notify_all(); });
      if (i % 2 == 0) test::await([&] { return begun.load(); });
      stop.request_stop();
    }
  });
}

TEST_P(condition_variable, an_exception_of_the_predicate_leaves_with_the_lock_held) {
  here([] {
    weft::mutex m;
    weft::condition_variable cv;
    std::stop_source stop;
    lock l(m);
    EXPECT_THROW(cv.wait(l, []() -> bool { throw 1; }), int);
    EXPECT_TRUE(l.owns_lock());
    EXPECT_THROW(cv.wait(l, stop.get_token(), []() -> bool { throw 1; }), int);
    EXPECT_TRUE(l.owns_lock());
    stop.request_stop();
  });
}

// ---- others ----

TEST_P(condition_variable, takes_any_lock) {
  here([] {
    weft::timed_mutex timed;
    weft::shared_mutex shared;
    std::mutex plain;
    weft::condition_variable_any cv;
    {
      std::unique_lock l(timed);
      EXPECT_EQ(cv.wait_for(l, 1ms), std::cv_status::timeout);
    }
    {
      std::shared_lock l(shared);
      EXPECT_EQ(cv.wait_for(l, 1ms), std::cv_status::timeout);
    }
    {
      std::unique_lock l(plain);
      EXPECT_EQ(cv.wait_for(l, 1ms), std::cv_status::timeout);
    }
  });
}

TEST_P(condition_variable, may_be_destroyed_once_all_waiters_were_notified) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(500, 200, 100));
    for (int i = 0; i < rounds; ++i) {
      weft::mutex m;
      auto cv = std::make_unique<weft::condition_variable>();
      int waiting = 0;
      bool go = false;
      std::stop_source stop;
      test::crew crew;
      for (int k = 0; k < 4; ++k) {
        crew.either(k == 3 && i % 8 == 0, [&, k, cv = cv.get()] {
          lock l(m);
          ++waiting;
          if (k == 0) {
            cv->wait(l);
          } else if (k == 1) {
            cv->wait_for(l, std::chrono::microseconds(i % 64));
          } else if (k == 2) {
            cv->wait(l, stop.get_token(), [&] { return go; });
          } else {
            cv->wait_for(l, 1h);
          }
          // The condition_variable may be gone.
        });
      }
      test::await([&] {
        lock l(m);
        return waiting == 4;
      });
      {
        lock l(m);
        go = true;
        cv->notify_all();
      }
      cv.reset();
      stop.request_stop();
    }
  });
}

}  // namespace
