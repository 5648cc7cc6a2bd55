// counting_semaphore and binary_semaphore: std's, for goroutines and plain threads.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;

static_assert(weft::counting_semaphore<5>::max() >= 5);
static_assert(weft::binary_semaphore::max() >= 1);
static_assert(weft::counting_semaphore<>::max() >= 1'000'000'000);
static_assert(!std::is_copy_constructible_v<weft::binary_semaphore>);
static_assert(!std::is_convertible_v<int, weft::binary_semaphore>);

constinit weft::counting_semaphore<10> at_namespace_scope(10);

class semaphore : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, semaphore, test::everywhere(), test::name_of);

TEST_P(semaphore, has_as_many_permits_as_it_is_given) {
  here([] {
    weft::counting_semaphore<> s(2);
    EXPECT_TRUE(s.try_acquire());
    s.acquire();
    EXPECT_FALSE(s.try_acquire());
    s.release();
    EXPECT_TRUE(s.try_acquire());
    s.release(3);
    for (int i = 0; i < 3; ++i) s.acquire();
    EXPECT_FALSE(s.try_acquire());
    EXPECT_TRUE(at_namespace_scope.try_acquire());
    at_namespace_scope.release();
  });
}

TEST_P(semaphore, acquire_waits_for_a_release) {
  here([] {
    weft::binary_semaphore ping(0), pong(0);
    const int rounds = static_cast<int>(test::scaled(1000, 300, 200));
    for (const bool by_thread : {false, true}) {
      int value = 0;
      test::crew crew;
      crew.either(by_thread, [&] {
        for (int i = 0; i < rounds; ++i) {
          ping.acquire();
          EXPECT_EQ(value, 2 * i + 1);
          ++value;
          pong.release();
        }
      });
      for (int i = 0; i < rounds; ++i) {
        ++value;
        ping.release();
        pong.acquire();
        EXPECT_EQ(value, 2 * i + 2);
      }
    }
  });
}

TEST_P(semaphore, lets_no_more_in_than_there_are_permits) {
  here([] {
    weft::counting_semaphore<3> s(3);
    std::atomic<int> inside = 0;
    const int each = static_cast<int>(test::scaled(1000, 200, 100));
    {
      test::crew crew;
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&] {
          for (int k = 0; k < each; ++k) {
            s.acquire();
            EXPECT_LE(++inside, 3);
            if (k % 8 == 0) weft::yield();
            --inside;
            s.release();
          }
        });
      }
    }
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire());
  });
}

TEST_P(semaphore, release_of_many_wakes_as_many) {
  here([] {
    weft::counting_semaphore<> s(0);
    std::atomic<int> through = 0;
    test::crew crew;
    for (int i = 0; i < 6; ++i) {
      crew.either(i, [&] {
        s.acquire();
        ++through;
      });
    }
    s.release(4);
    test::await([&] { return through.load() == 4; });
    EXPECT_FALSE(s.try_acquire());
    s.release(3);
    crew.wait();
    EXPECT_EQ(through.load(), 6);
    EXPECT_TRUE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire());
  });
}

TEST_P(semaphore, timed_acquires_give_up_when_their_time_comes) {
  here([] {
    weft::binary_semaphore s(0);
    const auto began = steady_clock::now();
    EXPECT_FALSE(s.try_acquire_for(3ms));
    EXPECT_GE(steady_clock::now() - began, 3ms);
    EXPECT_FALSE(s.try_acquire_until(steady_clock::now() + 1ms));
    const auto end = system_clock::now() + 2ms;
    EXPECT_FALSE(s.try_acquire_until(end));
    EXPECT_GE(system_clock::now(), end);
    EXPECT_FALSE(s.try_acquire_for(0s));
    EXPECT_FALSE(s.try_acquire_for(-1s));
    s.release();
    EXPECT_TRUE(s.try_acquire_for(-1s));
    test::crew crew;
    for (int i = 0; i < 4; ++i) crew.either(i, [&] { EXPECT_TRUE(s.try_acquire_for(1h)); });
    for (int i = 0; i < 4; ++i) {
      test::await([&] {  // release() beyond max() is a misuse
        if (!s.try_acquire()) return true;
        s.release();
        return false;
      });
      s.release();
    }
  });
}

TEST_P(semaphore, no_permit_is_lost_between_deadlines_and_releases) {
  here([] {
    weft::counting_semaphore<> s(0);
    const int each = static_cast<int>(test::scaled(2000, 300, 200));
    std::atomic<long> acquired = 0;
    {
      test::crew crew;
      for (int i = 0; i < 4; ++i) {
        crew.either(i, [&, i] {
          std::minstd_rand random(static_cast<unsigned>(i + 1));
          for (int k = 0; k < each; ++k) acquired += s.try_acquire_for(std::chrono::microseconds(random() % 20));
        });
      }
      for (int i = 0; i < 2; ++i) {
        crew.either(i, [&] {
          for (int k = 0; k < each; ++k) {
            s.release();
            if (k % 4 == 0) weft::yield();
          }
        });
      }
    }
    long left = 0;
    while (s.try_acquire()) ++left;
    EXPECT_EQ(acquired + left, 2 * each);
  });
}

TEST(semaphore_queue, serves_waiters_in_the_order_of_their_coming) {
  weft::run(
      [] {
        weft::counting_semaphore<> s(0);
        std::vector<int> order;
        std::atomic<int> served = 0;
        weft::wait_group all;
        for (int i = 0; i < 10; ++i) {
          const auto before = test::parks();
          all.go([&, i] {
            s.acquire();
            order.push_back(i);
            ++served;
          });
          test::await_parks(before + 1);
        }
        for (int i = 0; i < 10; ++i) {
          s.release();
          EXPECT_FALSE(s.try_acquire());  // it is the waiter's already
          test::await([&] { return served == i + 1; });
        }
        all.wait();
        for (int i = 0; i < 10; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
      },
      {.procs = 1});
}

TEST_P(semaphore, a_release_beyond_max_is_a_logic_error) {
  here([] {
    weft::binary_semaphore s(1);
    EXPECT_THROW(s.release(), std::logic_error);
    EXPECT_THROW(s.release(-1), std::logic_error);
    EXPECT_TRUE(s.try_acquire());
    EXPECT_THROW(s.release(2), std::logic_error);
    s.release();
    EXPECT_TRUE(s.try_acquire());
  });
}

TEST_P(semaphore, a_release_beyond_max_wakes_nobody) {
  here([] {
    weft::counting_semaphore<2> s(0);
    std::atomic<int> acquired = 0;
    const auto parks = test::parks();
    test::crew crew;
    crew.goroutine([&] {
      s.acquire();
      ++acquired;
    });
    test::await_parks(parks + 1);
    EXPECT_THROW(s.release(3), std::logic_error);
    EXPECT_FALSE(s.try_acquire());
    EXPECT_EQ(acquired, 0);
    s.release(2);
    crew.wait();
    EXPECT_TRUE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire());
  });
}

TEST_P(semaphore, may_be_destroyed_once_acquire_has_returned) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(2000, 500, 300));
    for (int i = 0; i < rounds; ++i) {
      auto s = std::make_unique<weft::binary_semaphore>(0);
      weft::go([s = s.get()] { s->release(); });
      if (i % 4 == 0) {
        EXPECT_TRUE(s->try_acquire_for(1h));
      } else {
        s->acquire();
      }
    }
  });
}

TEST(a_semaphore, cannot_begin_with_more_permits_than_its_greatest_number_or_fewer_than_none) {
  EXPECT_THROW(weft::counting_semaphore<5>(6), std::logic_error);
  EXPECT_THROW(weft::binary_semaphore(-1), std::logic_error);
  EXPECT_TRUE(weft::binary_semaphore(1).try_acquire());
}

TEST(a_semaphore, may_be_declared_as_large_as_the_standard_allows) {
  weft::counting_semaphore<std::numeric_limits<std::ptrdiff_t>::max()> s(1);
  static_assert(decltype(s)::max() == std::numeric_limits<std::ptrdiff_t>::max());
  s.acquire();
  EXPECT_FALSE(s.try_acquire());
  s.release();
  EXPECT_TRUE(s.try_acquire());
}

}  // namespace
