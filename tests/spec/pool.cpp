// pool: Go's sync.Pool.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/live.h"
#include "support/one_slice.h"

namespace {

struct object {
  explicit object(std::atomic<int>& alive) : count(alive) {}
  test::live count;
  std::atomic<int> users{0};
  int value = 0;
};

static_assert(!std::is_copy_constructible_v<weft::pool<object>>);

class pool : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, pool, test::everywhere(), test::name_of);

TEST_P(pool, makes_one_when_it_is_empty) {
  here([] {
    int made = 0;
    weft::pool<int> p([&] { return std::make_unique<int>(++made); });
    EXPECT_EQ(*p.get(), 1);
    EXPECT_EQ(*p.get(), 2);
  });
}

TEST_P(pool, gives_back_what_was_put_there) {
  here([] {
    // To who is still on the same P, that is.
    const auto [same, value, number] = test::in_one_slice([] {
      int made = 0;
      weft::pool<int> p([&] { return std::make_unique<int>(++made); });
      auto one = p.get();
      int* const address = one.get();
      *one = 17;
      p.put(std::move(one));
      one = p.get();
      return std::tuple(one.get() == address, *one, made);
    });
    EXPECT_TRUE(same);
    EXPECT_EQ(value, 17);
    EXPECT_EQ(number, 1);
  });
}

TEST_P(pool, ignores_null) {
  here([] {
    int made = 0;
    weft::pool<int> p([&] { return std::make_unique<int>(++made); });
    p.put(nullptr);
    EXPECT_EQ(*p.get(), 1);
  });
}

TEST_P(pool, keeps_a_bounded_number_and_destroys_the_rest) {
  here([] {
    std::atomic<int> alive = 0;
    {
      weft::pool<object> p([&] { return std::make_unique<object>(alive); });
      for (int i = 0; i < 10'000; ++i) p.put(std::make_unique<object>(alive));
      EXPECT_GT(alive.load(), 8);
      EXPECT_LT(alive.load(), 1000);
      std::set<object*> seen;
      std::vector<std::unique_ptr<object>> taken;
      for (int i = 0; i < 1000; ++i) {
        taken.push_back(p.get());
        EXPECT_TRUE(seen.insert(taken.back().get()).second);
      }
    }
    EXPECT_EQ(alive.load(), 0);
  });
}

TEST_P(pool, destroys_what_is_left_at_its_end) {
  here([] {
    std::atomic<int> alive = 0;
    {
      weft::pool<object> p([&] { return std::make_unique<object>(alive); });
      test::crew crew;
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&] {
          auto a = p.get(), b = p.get();
          weft::yield();
          p.put(std::move(a));
          p.put(std::move(b));
        });
      }
    }
    EXPECT_EQ(alive.load(), 0);
  });
}

TEST_P(pool, never_gives_one_object_to_two) {
  here([] {
    std::atomic<int> alive = 0;
    const int each = static_cast<int>(test::scaled(5000, 1000, 500));
    weft::pool<object> p([&] { return std::make_unique<object>(alive); });
    test::crew crew;
    for (int i = 0; i < 8; ++i) {
      crew.either(i, [&, i] {
        std::vector<std::unique_ptr<object>> mine;
        for (int k = 0; k < each; ++k) {
          mine.push_back(p.get());
          EXPECT_EQ(mine.back()->users.fetch_add(1), 0);
          ++mine.back()->value;  // handed over by the pool: no race
          if (k % 32 == i) weft::yield();
          while (mine.size() > static_cast<std::size_t>(k % 40)) {
            mine.back()->users.fetch_sub(1);
            p.put(std::move(mine.back()));
            mine.pop_back();
          }
        }
      });
    }
  });
}

TEST(pool_of_more_and_fewer_ps, keeps_working) {
  std::atomic<int> alive = 0;
  {
    weft::pool<object> p([&] { return std::make_unique<object>(alive); });
    for (const int procs : {2, 8, 1, 40, 3}) {
      weft::run(
          [&] {
            weft::wait_group all;
            for (int i = 0; i < 64; ++i) {
              all.go([&] {
                for (int k = 0; k < 20; ++k) {
                  auto o = p.get();
                  EXPECT_EQ(o->users.fetch_add(1), 0);
                  weft::yield();
                  o->users.fetch_sub(1);
                  p.put(std::move(o));
                }
              });
            }
            all.wait();
          },
          {.procs = procs});
    }
  }
  EXPECT_EQ(alive.load(), 0);
}

TEST(pool_in_steady_state, makes_nothing) {
  weft::run(
      [] {
        int made = 0;
        weft::pool<int> p([&] { return std::make_unique<int>(++made); });
        for (int i = 0; i < 10'000; ++i) {
          auto a = p.get(), b = p.get(), c = p.get();
          p.put(std::move(b));
          p.put(std::move(a));
          p.put(std::move(c));
        }
        EXPECT_EQ(made, 3);
      },
      {.procs = 1});
}

}  // namespace
