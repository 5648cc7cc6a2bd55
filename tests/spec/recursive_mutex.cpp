// recursive_mutex: its holder may lock it again.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <mutex>

#include "support/anywhere.h"
#include "support/migrate.h"

namespace {

static_assert(!std::is_copy_constructible_v<weft::recursive_mutex>);
static_assert(std::is_nothrow_default_constructible_v<weft::recursive_mutex>);

class recursive_mutex : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, recursive_mutex, test::everywhere(), test::name_of);

bool free_for_others(weft::recursive_mutex& m) {
  std::atomic<int> got = 0;
  {
    test::crew crew;
    const auto look = [&] {
      if (!m.try_lock()) return;
      ++got;
      m.unlock();
    };
    crew.goroutine(look);
    crew.wait();
    crew.thread(look);
  }
  EXPECT_TRUE(got == 0 || got == 2);
  return got == 2;
}

TEST_P(recursive_mutex, is_free_after_as_many_unlocks_as_locks) {
  here([] {
    weft::recursive_mutex m;
    m.lock();
    m.lock();
    EXPECT_TRUE(m.try_lock());
    EXPECT_FALSE(free_for_others(m));
    m.unlock();
    EXPECT_FALSE(free_for_others(m));
    m.unlock();
    EXPECT_FALSE(free_for_others(m));
    m.unlock();
    EXPECT_TRUE(free_for_others(m));
  });
}

TEST_P(recursive_mutex, lets_one_holder_in_at_a_time) {
  here([] {
    weft::recursive_mutex m;
    long count = 0;
    {
      test::crew crew;
      for (int i = 0; i < 6; ++i) {
        crew.either(i, [&] {
          for (int k = 0; k < 500; ++k) {
            std::lock_guard outer(m);
            const long before = count;
            std::lock_guard inner(m);
            if (k % 16 == 0) weft::yield();
            count = before + 1;
          }
        });
      }
    }
    EXPECT_EQ(count, 3000);
  });
}

TEST(recursive_mutex_of_a_goroutine, belongs_to_it_on_whatever_thread_it_goes_on) {
  weft::run(
      [] {
        weft::recursive_mutex m;
        m.lock();
        test::resume_on_another_thread();
        EXPECT_TRUE(m.try_lock());
        m.unlock();
        m.unlock();
        EXPECT_TRUE(free_for_others(m));
      },
      {.procs = 2});
}

}  // namespace
