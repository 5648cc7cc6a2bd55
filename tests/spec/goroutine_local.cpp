// goroutine_local: a value per goroutine, and per plain thread.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/live.h"
#include "support/migrate.h"

namespace {

static_assert(!std::is_copy_constructible_v<weft::goroutine_local<int>>);
struct no_default {
  explicit no_default(int n) : n(n) {}
  no_default(const no_default&) = delete;
  int n;
};
static_assert(!std::is_default_constructible_v<weft::goroutine_local<no_default>>);

class goroutine_local : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, goroutine_local, test::everywhere(), test::name_of);

TEST_P(goroutine_local, is_a_value_of_ones_own) {
  here([] {
    weft::goroutine_local<int> local;
    EXPECT_EQ(*local, 0);
    *local = 100;
    {
      test::crew crew;
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&, i] {
          EXPECT_EQ(*local, 0);
          *local = i;
          for (int k = 0; k < 20; ++k) {
            weft::yield();
            EXPECT_EQ(*local, i + k);
            ++*local;
          }
        });
      }
    }
    EXPECT_EQ(*local, 100);
  });
}

TEST_P(goroutine_local, is_made_by_its_function_on_first_use) {
  here([] {
    std::atomic<int> made = 0;
    weft::goroutine_local<no_default> local([&] { return no_default(10 + ++made); });
    EXPECT_EQ(made.load(), 0);
    EXPECT_EQ(local->n, 11);
    EXPECT_EQ((*local).n, 11);
    test::crew crew;
    crew.goroutine([] {});
    crew.thread([&] { EXPECT_EQ(local->n, 12); });
    crew.wait();
    EXPECT_EQ(made.load(), 2);
  });
}

TEST_P(goroutine_local, is_destroyed_at_the_end_of_its_goroutine_or_thread) {
  here([] {
    std::atomic<int> alive = 0;
    weft::goroutine_local<test::live> local([&] { return test::live(alive); });
    for (int i = 0; i < 20; ++i) {
      test::crew crew;
      crew.either(i, [&] {
        static_cast<void>(*local);
        EXPECT_EQ(alive.load(), 1);
        weft::yield();
      });
      crew.wait();
      test::await([&] { return alive.load() == 0; });
    }
    std::atomic<bool> used = false;
    weft::go([&] {
      static_cast<void>(*local);
      used = true;
      weft::exit_goroutine();
    });
    test::await([&] { return used.load() && alive.load() == 0; });
  });
}

TEST_P(goroutine_local, a_new_goroutine_finds_nothing_of_the_one_before_on_its_stack) {
  here([] {
    weft::goroutine_local<int> local;
    for (int i = 0; i < 1000; ++i) {
      weft::wait_group one;
      one.go([&] {
        EXPECT_EQ(*local, 0);
        *local = 1;
      });
      one.wait();
    }
  });
}

TEST_P(goroutine_local, many_of_them_do_not_mix) {
  here([] {
    std::vector<std::unique_ptr<weft::goroutine_local<int>>> locals;
    for (int i = 0; i < 100; ++i) locals.push_back(std::make_unique<weft::goroutine_local<int>>([i] { return i; }));
    test::crew crew;
    for (int k = 0; k < 4; ++k) {
      crew.either(k, [&] {
        for (int round = 0; round < 3; ++round) {
          for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(**locals[static_cast<std::size_t>(i)], i + round);
            ++**locals[static_cast<std::size_t>(i)];
          }
          weft::yield();
        }
      });
    }
  });
}

TEST_P(goroutine_local, may_be_destroyed_before_the_goroutines_that_hold_values) {
  here([] {
    std::atomic<int> alive = 0;
    {
      test::crew crew;
      std::atomic<int> made = 0;
      std::atomic<bool> gone = false;
      auto local = std::make_unique<weft::goroutine_local<test::live>>([&] { return test::live(alive); });
      for (int i = 0; i < 4; ++i) {
        crew.either(i, [&] {
          static_cast<void>(**local);
          ++made;
          test::await([&] { return gone.load(); });
          weft::goroutine_local<int> another;  // gets nothing of the one that is gone
          EXPECT_EQ(*another, 0);
        });
      }
      test::await([&] { return made.load() == 4; });
      local.reset();
      EXPECT_EQ(alive.load(), 4);
      gone = true;
    }
    test::await([&] { return alive.load() == 0; });
  });
}

TEST_P(goroutine_local, values_are_destroyed_in_reverse_and_a_destructor_may_use_others) {
  here([] {
    static std::string order;
    static weft::mutex lock;
    struct noting {
      char name = '?';
      weft::goroutine_local<int>* uses = nullptr;
      ~noting() {
        if (name == '?') return;
        std::lock_guard guard(lock);
        order += name;
        if (uses != nullptr) order += std::to_string((**uses)++);
      }
    };
    for (const bool thread : {false, true}) {
      order.clear();
      weft::goroutine_local<noting> a, b;
      weft::goroutine_local<int> number;
      {
        test::crew crew;
        crew.either(thread, [&] {
          a->name = 'a';
          a->uses = &number;  // is gone by then, and made again
          *number = 5;
          b->name = 'b';
          b->uses = &number;  // is still there
        });
        crew.wait();
      }
      test::await([&] {
        std::lock_guard guard(lock);
        return order.size() == 4;
      });
      EXPECT_EQ(order, "b5a0");
    }
  });
}

TEST_P(goroutine_local, an_exception_of_its_function_leaves_nothing_behind) {
  here([] {
    int calls = 0;
    weft::goroutine_local<int> local([&] {
      if (++calls == 1) throw std::runtime_error("not yet");
      return calls;
    });
    EXPECT_THROW(static_cast<void>(*local), std::runtime_error);
    EXPECT_EQ(*local, 2);
  });
}

TEST(goroutine_local_of_main, is_destroyed_when_run_returns) {
  std::atomic<int> alive = 0;
  weft::goroutine_local<test::live> local([&] { return test::live(alive); });
  weft::run([&] {
    static_cast<void>(*local);
    EXPECT_EQ(alive.load(), 1);
  });
  EXPECT_EQ(alive.load(), 0);
}

TEST(goroutine_local_of_a_goroutine, follows_it_to_another_thread) {
  weft::run(
      [] {
        weft::goroutine_local<int> local;
        *local = 7;
        int* const address = &*local;
        test::resume_on_another_thread();
        EXPECT_EQ(&*local, address);
        EXPECT_EQ(*local, 7);
      },
      {.procs = 2});
}

}  // namespace
