// group: goroutines that belong together.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/live.h"

namespace {

static_assert(!std::is_copy_constructible_v<weft::group>);

class group : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, group, test::everywhere(), test::name_of);

TEST_P(group, wait_waits_for_all_of_its_goroutines) {
  here([] {
    weft::group g;
    g.wait();
    std::atomic<int> ended = 0;
    for (int i = 0; i < 20; ++i) {
      g.go([&] {
        weft::yield();
        ++ended;
      });
    }
    g.wait();
    EXPECT_EQ(ended.load(), 20);
    g.go([&] { ++ended; });  // it can be used again
    g.wait();
    EXPECT_EQ(ended.load(), 21);
  });
}

TEST_P(group, its_destructor_waits) {
  here([] {
    std::atomic<int> ended = 0;
    {
      weft::group g;
      for (int i = 0; i < 20; ++i) {
        g.go([&] {
          for (int k = 0; k < 5; ++k) weft::yield();
          ++ended;
        });
      }
    }
    EXPECT_EQ(ended.load(), 20);
  });
}

TEST_P(group, wait_rethrows_the_first_exception_once) {
  here([] {
    weft::group g;
    g.go([] { throw std::runtime_error("one"); });
    try {
      g.wait();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(std::string(e.what()), "one");
    }
    g.wait();
    weft::group second;
    second.go([] { throw std::runtime_error("first"); });
    second.go([](std::stop_token stop) {
      test::await([&] { return stop.stop_requested(); });
      throw std::logic_error("second");
    });
    EXPECT_THROW(second.wait(), std::runtime_error);
  });
}

TEST_P(group, an_exception_requests_stop_on_the_others) {
  here([] {
    weft::group g;
    std::atomic<int> stopped = 0;
    weft::mutex m;
    weft::condition_variable cv;
    for (int i = 0; i < 6; ++i) {
      g.go([&](std::stop_token stop) {
        std::unique_lock l(m);
        cv.wait(l, stop, [] { return false; });
        ++stopped;
      });
    }
    EXPECT_FALSE(g.token().stop_requested());
    g.go([] { throw 42; });
    EXPECT_THROW(g.wait(), int);
    EXPECT_EQ(stopped.load(), 6);
    EXPECT_TRUE(g.token().stop_requested());
  });
}

TEST_P(group, an_end_without_exception_does_not_request_stop) {
  here([] {
    weft::group g;
    g.go([] {});
    g.go([](std::stop_token stop) { EXPECT_FALSE(stop.stop_requested()); });
    g.go([] { weft::exit_goroutine(); });
    g.wait();
    EXPECT_FALSE(g.token().stop_requested());
  });
}

TEST_P(group, an_exception_that_destroys_it_requests_stop) {
  here([] {
    bool caught = false;
    std::atomic<bool> stopped = false;
    try {
      weft::group g;
      g.go([&](std::stop_token stop) {
        test::await([&] { return stop.stop_requested(); });
        stopped = true;
      });
      throw std::runtime_error("the parent fails");
    } catch (const std::runtime_error&) {
      caught = true;
    }
    EXPECT_TRUE(caught);
    EXPECT_TRUE(stopped.load());
  });
}

TEST_P(group, an_exception_that_nobody_waits_for_is_dropped) {
  here([] {
    weft::group g;
    g.go([] { throw 1; });
  });
}

TEST_P(group, no_more_run_at_the_same_time_than_the_limit) {
  here([] {
    weft::group g;
    g.set_limit(3);
    std::atomic<int> running = 0, most = 0, ended = 0;
    for (int i = 0; i < 60; ++i) {
      g.go([&] {
        const int now = ++running;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        weft::yield();
        --running;
        ++ended;
      });
    }
    g.wait();
    EXPECT_LE(most.load(), 3);
    EXPECT_EQ(ended.load(), 60);
    g.set_limit(-1);
    std::atomic<int> together = 0;
    for (int i = 0; i < 10; ++i) {
      g.go([&] {
        ++together;
        test::await([&] { return together.load() == 10; });
      });
    }
    g.wait();
  });
}

TEST_P(group, go_waits_while_as_many_run_as_the_limit_allows) {
  here([] {
    weft::group g;
    g.set_limit(1);
    weft::binary_semaphore hold(0);
    std::atomic<bool> second_started = false;
    g.go([&] { hold.acquire(); });
    test::crew crew;
    crew.goroutine([&] { hold.release(); });
    g.go([&] { second_started = true; });  // not before the first has ended
    g.wait();
    EXPECT_TRUE(second_started.load());
  });
}

TEST_P(group, the_limit_cannot_be_changed_while_goroutines_run_and_cannot_be_zero) {
  here([] {
    weft::group g;
    weft::binary_semaphore hold(0);
    g.go([&] { hold.acquire(); });
    EXPECT_THROW(g.set_limit(2), std::logic_error);
    hold.release();
    g.wait();
    g.set_limit(2);
    EXPECT_THROW(g.set_limit(0), std::logic_error);
  });
}

TEST_P(group, its_goroutines_may_start_others_in_it) {
  here([] {
    weft::group g;
    std::atomic<int> ended = 0;
    for (int i = 0; i < 4; ++i) {
      g.go([&] {
        for (int k = 0; k < 4; ++k) g.go([&] { ++ended; });
        ++ended;
      });
    }
    g.wait();
    EXPECT_EQ(ended.load(), 20);
  });
}

TEST_P(group, functions_are_destroyed_when_wait_returns) {
  here([] {
    std::atomic<int> alive = 0;
    weft::group g;
    for (int i = 0; i < 20; ++i) g.go([object = std::make_unique<test::live>(alive)] {});
    g.go([object = test::live(alive)](std::stop_token) { throw 1; });
    EXPECT_THROW(g.wait(), int);
    EXPECT_EQ(alive.load(), 0);
  });
}

TEST_P(group, may_be_destroyed_once_wait_has_returned) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(2000, 500, 300));
    for (int i = 0; i < rounds; ++i) {
      auto g = std::make_unique<weft::group>();
      if (i % 2 == 0) g->set_limit(1);
      g->go([] {});
      g->go([] {});
      g->wait();
    }
  });
}

}  // namespace
