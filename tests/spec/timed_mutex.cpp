// timed_mutex: a mutex whose lock can be given up waiting for.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>

#include "support/anywhere.h"
#include "support/build.h"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;

static_assert(requires(weft::timed_mutex m) {
  m.lock();
  m.unlock();
  { m.try_lock() } -> std::same_as<bool>;
  { m.try_lock_for(1ms) } -> std::same_as<bool>;
  { m.try_lock_until(steady_clock::time_point()) } -> std::same_as<bool>;
  { m.try_lock_until(system_clock::time_point()) } -> std::same_as<bool>;
});
static_assert(!std::is_copy_constructible_v<weft::timed_mutex>);

class timed_mutex : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, timed_mutex, test::everywhere(), test::name_of);

TEST_P(timed_mutex, try_lock_for_gives_up_after_that_time_and_not_before) {
  here([] {
    weft::timed_mutex m;
    m.lock();
    const auto try_in_vain = [&] {
      const auto began = steady_clock::now();
      EXPECT_FALSE(m.try_lock_for(5ms));
      EXPECT_GE(steady_clock::now() - began, 5ms);
      EXPECT_FALSE(m.try_lock_until(steady_clock::now() + 3ms));
      const auto end = system_clock::now() + 3ms;
      EXPECT_FALSE(m.try_lock_until(end));
      EXPECT_GE(system_clock::now(), end);
    };
    test::crew crew;
    crew.goroutine(try_in_vain);
    crew.thread(try_in_vain);
    crew.wait();
    m.unlock();
    EXPECT_TRUE(m.try_lock_for(1ms));
    m.unlock();
  });
}

TEST_P(timed_mutex, a_time_that_has_passed_means_try_lock) {
  here([] {
    weft::timed_mutex m;
    EXPECT_TRUE(m.try_lock_for(0ms));
    m.unlock();
    EXPECT_TRUE(m.try_lock_for(-1s));
    m.unlock();
    EXPECT_TRUE(m.try_lock_until(steady_clock::now() - 1s));
    test::crew crew;
    crew.goroutine([&] {
      EXPECT_FALSE(m.try_lock_for(0ms));
      EXPECT_FALSE(m.try_lock_for(-1s));
      EXPECT_FALSE(m.try_lock_until(steady_clock::now() - 1s));
    });
    crew.wait();
    m.unlock();
  });
}

TEST_P(timed_mutex, is_got_in_time_when_its_holder_unlocks) {
  here([] {
    weft::timed_mutex m;
    m.lock();
    test::crew crew;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&] {
        EXPECT_TRUE(m.try_lock_for(1h));
        m.unlock();
      });
    }
    weft::sleep_for(1ms);
    m.unlock();
  });
}

TEST_P(timed_mutex, works_with_unique_lock_and_a_duration_that_means_for_ever) {
  here([] {
    weft::timed_mutex m;
    std::unique_lock held(m, 1s);
    EXPECT_TRUE(held.owns_lock());
    test::crew crew;
    crew.goroutine([&] {
      std::unique_lock later(m, std::chrono::hours::max());
      EXPECT_TRUE(later.owns_lock());
    });
    weft::sleep_for(1ms);
    held.unlock();
  });
}

TEST_P(timed_mutex, who_gives_up_does_not_stand_in_the_way_of_those_behind) {
  here([] {
    weft::timed_mutex m;
    m.lock();
    std::atomic<int> gave_up = 0;
    test::crew crew;
    for (int i = 0; i < 6; ++i) {
      crew.either(i / 2, [&, i] {
        if (i % 2 == 0) {
          EXPECT_FALSE(m.try_lock_for(1ms));
          ++gave_up;
        } else {
          m.lock();
          m.unlock();
        }
      });
    }
    test::await([&] { return gave_up.load() == 3; });
    m.unlock();
  });
}

TEST_P(timed_mutex, survives_races_of_deadlines_and_unlocks) {
  here([] {
    weft::timed_mutex m;
    const int each = static_cast<int>(test::scaled(2000, 300, 200));
    long count = 0;
    std::atomic<long> got = 0;
    {
      test::crew crew;
      for (int i = 0; i < 6; ++i) {
        crew.either(i, [&, i] {
          std::minstd_rand random(static_cast<unsigned>(i + 1));
          for (int k = 0; k < each; ++k) {
            if (!m.try_lock_for(std::chrono::microseconds(random() % 30))) continue;
            ++count;
            ++got;
            if (random() % 8 == 0) weft::sleep_for(std::chrono::microseconds(random() % 30));
            m.unlock();
          }
        });
      }
    }
    EXPECT_EQ(count, got.load());
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

}  // namespace
