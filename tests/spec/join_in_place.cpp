// A goroutine that is joined before it has begun runs on the stack of who joins it. Nobody can tell, but by the counter.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "support/await.h"
#include "support/build.h"
#include "support/one_slice.h"

namespace {

using namespace std::chrono_literals;

std::uint64_t joined() { return weft::runtime::read_sched_stats().joined_in_place; }

class joined_in_place : public testing::TestWithParam<int> {
 protected:
  template <class F>
  void run(F f) {
    weft::run(f, {.procs = GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(with_procs, joined_in_place, testing::Values(1, 2, 8), testing::PrintToStringParamName());

// On several Ps any one of them may be stolen first; of many, some are not.
TEST_P(joined_in_place, are_most_that_are_joined_at_once) {
  run([] {
    const auto before = joined();
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(weft::async([i] { return i; }).get(), i);
    EXPECT_GT(joined() - before, 500u);
  });
}

TEST_P(joined_in_place, is_a_goroutine_of_its_own) {
  run([] {
    static weft::goroutine_local<std::string> name;
    *name = "parent";
    const auto parent = weft::goroutine_id();
    std::set<std::uint64_t> ids{parent};
    for (int i = 0; i < 100; ++i) {
      ids.insert(weft::async([&] {
                   EXPECT_EQ(*name, "");
                   *name = "child";
                   return weft::goroutine_id();
                 }).get());
      EXPECT_EQ(*name, "parent");
      EXPECT_EQ(weft::goroutine_id(), parent);
    }
    EXPECT_EQ(ids.size(), 101u);
  });
}

TEST_P(joined_in_place, is_counted_as_one) {
  run([] {
    test::await_solitude();
    EXPECT_EQ(weft::async([] { return weft::runtime::num_goroutine(); }).get(), 2u);
    test::await_solitude();  // one that was stolen ends after its value is there
  });
}

// Calls: compilers keep errno's address across a park, and it is another thread's after it.
[[gnu::noinline]] void set_errno(int n) {
  errno = n;
  asm volatile("" ::: "memory");
}
[[gnu::noinline]] int get_errno() {
  asm volatile("" ::: "memory");
  return errno;
}

TEST_P(joined_in_place, has_an_errno_of_its_own) {
  run([] {
    for (int i = 0; i < 100; ++i) {
      set_errno(42);
      const int childs = weft::async([] {
                           const int first = get_errno();
                           set_errno(7);
                           return first;
                         }).get();
      EXPECT_EQ(childs, 0);
      EXPECT_EQ(get_errno(), 42);
    }
  });
}

TEST_P(joined_in_place, does_not_see_the_exception_that_its_parent_handles) {
  run([] {
    try {
      throw std::runtime_error("the parent's");
    } catch (...) {
      weft::async([] {
        EXPECT_EQ(std::current_exception(), nullptr);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        try {
          throw 1;
        } catch (int) {
          weft::yield();
        }
      }).get();
      try {
        throw;
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "the parent's");
      }
    }
  });
}

TEST_P(joined_in_place, passes_on_its_exception) {
  run([] {
    for (int i = 0; i < 100; ++i) {
      try {
        weft::async([i] { throw i; }).get();
        FAIL();
      } catch (int caught) {
        EXPECT_EQ(caught, i);
      }
    }
  });
}

TEST_P(joined_in_place, may_exit) {
  run([] {
    bool unwound = false;
    struct flag {
      bool& set;
      ~flag() { set = true; }
    };
    auto f = weft::async([&] {
      flag on_exit{unwound};
      weft::exit_goroutine();
    });
    EXPECT_THROW(f.get(), std::future_error);
    EXPECT_TRUE(unwound);
  });
}

TEST_P(joined_in_place, may_wait_yield_and_sleep) {
  run([] {
    for (int i = 0; i < 50; ++i) {
      weft::chan<int> c;
      weft::go([=] { c.send(i); });
      auto f = weft::async([=] {
        weft::yield();
        weft::sleep_for(10us);
        return *c.recv();
      });
      EXPECT_EQ(f.get(), i);
    }
  });
}

// The child waits for what another goroutine does only after it has seen the parent wait.
TEST_P(joined_in_place, may_wait_for_others_that_wait) {
  run([] {
    weft::chan<int> first, second;
    weft::go([=] {
      for (int v : first) second.send(v + 1);
    });
    auto f = weft::async([=] {
      int sum = 0;
      for (int i = 0; i < 100; ++i) {
        auto inner = weft::async([=] {
          first.send(i);
          return *second.recv();
        });
        sum += inner.get();
      }
      return sum;
    });
    EXPECT_EQ(f.get(), 5050);
    first.close();
  });
}

// Deeper than any stack could hold: then they are parked as ever.
int depth(int n) { return n == 0 ? 0 : 1 + weft::async([n] { return depth(n - 1); }).get(); }

TEST_P(joined_in_place, nests_as_deep_as_there_is_room_and_then_does_not) {
  run([] { EXPECT_EQ(depth(3000), 3000); });
}

[[gnu::noinline]] std::size_t use_stack(std::size_t bytes) {
  volatile char block[1024];
  block[0] = static_cast<char>(bytes);
  return bytes < sizeof block ? 1 : use_stack(bytes - sizeof block) + block[0] * 0u + 1;
}

TEST_P(joined_in_place, has_a_whole_stack_to_use) {
  run([] {
    constexpr std::size_t most = test::under_sanitizer ? 50 * 1024 : 240 * 1024;
    // However deep its parents are when they join it.
    std::function<std::size_t(int)> at_depth = [&](int n) {
      if (n == 0) return use_stack(most);
      return weft::async([&, n] { return at_depth(n - 1); }).get();
    };
    for (int n : {0, 1, 2, 5, 20, 100}) EXPECT_GT(at_depth(n), 40u);
  });
}

std::uint64_t fib(std::uint64_t n) {
  if (n < 2) return n;
  auto a = weft::async([n] { return fib(n - 1); });
  const std::uint64_t b = fib(n - 2);
  return a.get() + b;
}

TEST_P(joined_in_place, fork_and_join_of_a_tree) {
  run([] {
    const auto before = joined();
    EXPECT_EQ(fib(20), 6765u);
    EXPECT_GT(joined(), before);
  });
}

TEST_P(joined_in_place, locks_no_recursive_mutex_of_its_parent) {
  run([] {
    weft::recursive_mutex m;
    std::lock_guard guard(m);
    EXPECT_FALSE(weft::async([&] { return m.try_lock(); }).get());
  });
}

TEST_P(joined_in_place, by_a_wait_group_or_a_group_too) {
  run([] {
    const auto before = joined();
    int n = 0;
    for (int i = 0; i < 100; ++i) {
      weft::wait_group wg;
      wg.go([&] { ++n; });
      wg.wait();
      weft::group g;
      g.go([&] { ++n; });
      g.wait();
    }
    EXPECT_EQ(n, 200);
    EXPECT_GT(joined(), before);
    weft::group failing;
    failing.go([] { throw std::runtime_error("of the group"); });
    EXPECT_THROW(failing.wait(), std::runtime_error);
  });
}

TEST(joined_in_place_order, is_the_usual_one_where_many_are_waited_for) {
  weft::run(
      [] {
        const auto order = test::in_one_slice([] {
          std::vector<std::atomic<int>> order(10);  // one that loses its P goes on beside the next
          std::atomic<std::size_t> next = 0;
          weft::wait_group wg;
          for (int i = 0; i < 10; ++i) wg.go([&, i] { order[next++] = i; });
          wg.wait();
          return std::vector<int>(order.begin(), order.end());
        });
        EXPECT_EQ(order, (std::vector<int>{9, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
      },
      {.procs = 1});
}

TEST_P(joined_in_place, is_not_done_on_a_thread_that_the_parent_is_tied_to) {
  run([] {
    weft::lock_os_thread();
    const pid_t mine = ::gettid();
    for (int i = 0; i < 20; ++i) EXPECT_NE(weft::async([] { return ::gettid(); }).get(), mine);
    weft::unlock_os_thread();
  });
}

bool exists(pid_t tid) { return ::access(("/proc/self/task/" + std::to_string(tid)).c_str(), F_OK) == 0; }

TEST_P(joined_in_place, takes_its_thread_along_if_it_ends_tied_to_it) {
  run([] {
    for (int i = 0; i < 10; ++i) {
      const pid_t tied = weft::async([] {
                           weft::lock_os_thread();
                           return ::gettid();
                         }).get();
      EXPECT_NE(::gettid(), tied);
      test::await([&] { return !exists(tied); });
    }
  });
}

TEST_P(joined_in_place, may_tie_itself_and_let_go) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      const bool same = weft::async([] {
                          weft::lock_os_thread();
                          const pid_t mine = ::gettid();
                          weft::sleep_for(100us);
                          const bool result = ::gettid() == mine;
                          weft::unlock_os_thread();
                          return result;
                        }).get();
      EXPECT_TRUE(same);
    }
  });
}

[[gnu::noinline]] void child_that_waits(weft::chan<int> c) {
  c.recv();
  asm volatile("");
}
[[gnu::noinline]] void parent_that_joins(weft::chan<int> c) {
  weft::async([=] { child_that_waits(c); }).get();
  asm volatile("");
}

TEST(a_dump_of_goroutines_that_share_a_stack, shows_each_with_its_own_frames) {
  weft::run(
      [] {
        const weft::chan<int> c;
        weft::wait_group wg;
        wg.go([=] { parent_that_joins(c); });
        std::string text;
        test::await([&] {  // both wait
          std::ostringstream out;
          weft::runtime::dump_goroutines(out);
          text = out.str();
          return text.find("[chan receive]:") != text.npos && text.find("[future wait]:") != text.npos;
        });
        const auto begin_of = [&](const std::string& what) { return text.rfind("goroutine ", text.find(what)); };
        ASSERT_NE(text.find("child_that_waits"), text.npos) << text;
        ASSERT_NE(text.find("parent_that_joins"), text.npos) << text;
        EXPECT_EQ(text.compare(text.find('[', begin_of("child_that_waits")), 15, "[chan receive]:"), 0) << text;
        const auto joining = text.find("[future wait]:");
        ASSERT_NE(joining, text.npos) << text;
        const std::string parents = text.substr(joining, text.find("\n\n", joining) - joining);
        EXPECT_NE(parents.find("parent_that_joins"), text.npos) << text;
        EXPECT_EQ(parents.find("\tchild_that_waits"), text.npos) << text;
        c.close();
        wg.wait();
      },
      {.procs = 1});
}

// Several threads' worth of forks and joins, with thieves between them, and all that a child may do.
TEST_P(joined_in_place, under_load) {
  run([] {
    weft::wait_group wg;
    std::atomic<std::uint64_t> sum = 0;
    for (int k = 0; k < 16; ++k) {
      wg.go([&, k] {
        for (std::uint64_t i = 0; i < test::scaled(2000, 400, 200); ++i) {
          auto a = weft::async([i] { return i; });
          auto b = weft::async([&, i, k] {
            if (i % 7 == 0) weft::yield();
            if (i % 97 == static_cast<std::uint64_t>(k)) weft::sleep_for(10us);
            return weft::async([i] { return i; }).get();
          });
          if (i % 2 == 0) {
            sum += b.get() + a.get();
          } else {
            sum += a.get() + b.get();
          }
        }
      });
    }
    wg.wait();
    const std::uint64_t n = test::scaled(2000, 400, 200);
    EXPECT_EQ(sum, 16 * n * (n - 1));
  });
}

}  // namespace
