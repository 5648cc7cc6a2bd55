// mutex: std::mutex for goroutines and plain threads, fair under starvation.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"

namespace {

using namespace std::chrono_literals;

template <class M>
concept lockable = requires(M m) {
  { m.lock() } -> std::same_as<void>;
  { m.unlock() } -> std::same_as<void>;
  { m.try_lock() } -> std::same_as<bool>;
};

static_assert(lockable<weft::mutex>);
static_assert(sizeof(weft::mutex) <= 16);
static_assert(std::is_nothrow_default_constructible_v<weft::mutex>);
static_assert(!std::is_copy_constructible_v<weft::mutex> && !std::is_copy_assignable_v<weft::mutex>);
static_assert(!std::is_move_constructible_v<weft::mutex>);

constinit weft::mutex at_namespace_scope;  // constant initialization, as std::mutex

class mutex : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, mutex, test::everywhere(), test::name_of);

TEST_P(mutex, lets_one_in_at_a_time) {
  here([] {
    weft::mutex m;
    const int each = static_cast<int>(test::scaled(20'000, 3'000, 2'000));
    long count = 0;
    std::atomic<int> inside = 0;
    {
      test::crew crew;
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&] {
          for (int k = 0; k < each; ++k) {
            std::lock_guard guard(m);
            EXPECT_EQ(inside.fetch_add(1), 0);
            ++count;
            inside.fetch_sub(1);
          }
        });
      }
    }
    EXPECT_EQ(count, 8l * each);
  });
}

TEST_P(mutex, lets_one_in_at_a_time_when_the_holder_yields_and_sleeps) {
  here([] {
    weft::mutex m;
    const int each = static_cast<int>(test::scaled(300, 100, 50));
    long count = 0;
    {
      test::crew crew;
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&, i] {
          for (int k = 0; k < each; ++k) {
            std::lock_guard guard(m);
            const long before = count;
            if (k % 50 == i) {
              weft::sleep_for(100us);
            } else {
              weft::yield();
            }
            count = before + 1;
          }
        });
      }
    }
    EXPECT_EQ(count, 8l * each);
  });
}

TEST_P(mutex, try_lock_takes_a_free_one_and_fails_on_a_held_one) {
  here([] {
    weft::mutex m;
    ASSERT_TRUE(m.try_lock());
    test::crew crew;
    crew.goroutine([&] { EXPECT_FALSE(m.try_lock()); });
    crew.thread([&] { EXPECT_FALSE(m.try_lock()); });
    crew.wait();
    m.unlock();
    crew.thread([&] {
      EXPECT_TRUE(m.try_lock());
      m.unlock();
    });
  });
}

TEST_P(mutex, try_lock_never_fails_on_a_mutex_that_nobody_else_wants) {
  here([] {
    weft::mutex m;
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(m.try_lock());
      m.unlock();
    }
  });
}

TEST_P(mutex, works_with_the_locks_of_std) {
  here([] {
    weft::mutex a, b;
    int shared = 0;
    test::crew crew;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&, i] {
        for (int k = 0; k < 200; ++k) {
          if (i < 2) {
            std::scoped_lock both(a, b);
            ++shared;
          } else {
            std::scoped_lock both(b, a);  // the other way round: no deadlock
            ++shared;
          }
          std::unique_lock first(a, std::defer_lock);
          std::unique_lock second(b, std::defer_lock);
          std::lock(second, first);
          ++shared;
        }
      });
    }
    crew.wait();
    std::unique_lock only(at_namespace_scope, std::try_to_lock);
    EXPECT_TRUE(only.owns_lock());
    EXPECT_EQ(shared, 1600);
  });
}

TEST_P(mutex, may_be_unlocked_by_another_than_who_locked_it) {
  here([] {
    weft::mutex m;
    m.lock();
    test::crew crew;
    crew.goroutine([&] { m.unlock(); });
    m.lock();
    crew.wait();
    crew.thread([&] { m.unlock(); });
    m.lock();
    m.unlock();
  });
}

TEST(mutex_queue, serves_waiters_in_the_order_of_their_coming) {
  weft::run(
      [] {
        weft::mutex m;
        std::vector<int> order;
        weft::wait_group all;
        m.lock();
        for (int i = 0; i < 20; ++i) {
          const auto before = test::parks();
          all.go([&, i] {
            std::lock_guard guard(m);
            order.push_back(i);
          });
          test::await_parks(before + 1);
        }
        m.unlock();
        all.wait();
        for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
      },
      {.procs = 1});
}

// The hog never leaves a gap that a waiter could use by luck: it locks again right after its unlock. With the rule it
// has to let the waiter in once that has waited for 1 ms; without it, nearly never. (The waiter must have a core once to see
// that it has waited, and a busy machine may be long in giving it one: seconds of the hog's turns.)
TEST_P(mutex, who_has_waited_for_a_millisecond_gets_it_next) {
  here([] {
    weft::mutex m;
    std::atomic<bool> stop = false;
    std::atomic<int> taken = 0;
    test::crew crew;
    crew.goroutine([&] {
      m.lock();
      while (!stop) {
        ++taken;
        weft::sleep_for(2ms);
        m.unlock();
        m.lock();
      }
      m.unlock();
    });
    for (int i = 0; i < 5; ++i) {
      const int before = taken;
      test::await([&] { return taken.load() > before; });  // the hog has it
      m.lock();
      EXPECT_LT(taken - before, 2000);
      m.unlock();
    }
    stop = true;
  });
}

TEST_P(mutex, is_not_kept_from_one_waiter_by_a_crowd_that_never_sleeps) {
  here([] {
    weft::mutex m;
    std::atomic<bool> stop = false;
    long count = 0;
    test::crew crew;
    for (int i = 0; i < 3; ++i) {
      crew.goroutine([&] {
        while (!stop) {
          weft::checkpoint();
          std::lock_guard guard(m);
          ++count;
        }
      });
    }
    for (int i = 0; i < 10; ++i) {
      weft::sleep_for(100us);
      std::lock_guard guard(m);
      ++count;
    }
    stop = true;
  });
}

// The usual way to die of a mutex: it is part of what it guards, and the last one out deletes it, while the one before
// may still be within its unlock().
TEST_P(mutex, may_be_destroyed_by_who_got_it_last) {
  here([] {
    struct shared_object {
      weft::mutex m;
      int owners = 3;
      void release() {
        m.lock();
        const bool last = --owners == 0;
        m.unlock();
        if (last) delete this;
      }
    };
    const int rounds = static_cast<int>(test::scaled(3000, 500, 300));
    std::vector<std::atomic<shared_object*>> objects(static_cast<std::size_t>(rounds));
    for (auto& o : objects) o = new shared_object;
    test::crew crew;
    for (int i = 0; i < 3; ++i) {
      crew.either(i, [&] {
        for (auto& o : objects) o.load()->release();
      });
    }
  });
}

}  // namespace
