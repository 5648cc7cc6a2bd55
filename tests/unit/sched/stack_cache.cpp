// Stacks: few for those that never park, as many as park at once for the others, and back to the system afterwards.
#include <gtest/gtest.h>
#include <unistd.h>
#include <weft/detail/event.h>
#include <weft/weft.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <thread>

#include "gmp/processor.h"
#include "sched/stack.h"
#include "support/await.h"
#include "support/build.h"

namespace {

using weft::detail::event;
using weft::gmp::processor;
using weft::runtime::read_sched_stats;

// Stacks are carved in batches of at most this many.
constexpr std::uint64_t batch = 64;

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  in >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Goroutines that use `pages` of their stack and then wait at a gate.
class parked_crowd {
 public:
  parked_crowd(int count, int pages) : count_(count) {
    for (int i = 0; i < count; ++i) {
      weft::go([this, pages] {
        use_stack(pages);
        ++parked_;
        gate_.wait();
        ++ended_;
      });
    }
    test::await([this] { return parked_ == count_; });
  }
  parked_crowd(const parked_crowd&) = delete;
  parked_crowd& operator=(const parked_crowd&) = delete;
  ~parked_crowd() { end(); }

  void end() {
    if (!gate_.is_set()) gate_.set();
    test::await([this] { return ended_ == count_; });
  }

 private:
  [[gnu::noinline]] static void use_stack(int pages) {
    char page[4096];
    asm volatile("" ::"r"(page) : "memory");
    page[0] = page[4095] = 1;
    if (pages > 1) use_stack(pages - 1);
    asm volatile("" ::"r"(page) : "memory");
  }

  const int count_;
  event gate_;
  std::atomic<int> parked_{0};
  std::atomic<int> ended_{0};
};

// ---- stacks that are handed on --------------------------------------------------------------------------------------

TEST(goroutines_that_never_park, use_a_handful_of_stacks_however_many_they_are) {
  for (const int procs : {1, 2, 8}) {
    const int count = static_cast<int>(test::scaled(200'000, 50'000, 20'000));
    weft::run(
        [&] {
          const auto before = read_sched_stats();
          std::atomic<int> ran = 0;
          for (int i = 0; i < count; ++i) weft::go([&ran] { ++ran; });
          test::await([&] { return ran == count; });
          const auto after = read_sched_stats();
          EXPECT_LE(after.stacks_total - before.stacks_total,
                    batch + static_cast<std::uint64_t>(procs) * processor::stack_cache_size);
          EXPECT_EQ(after.stacks_bound - before.stacks_bound + after.stacks_inherited - before.stacks_inherited,
                    static_cast<std::uint64_t>(count));
        },
        {.procs = procs});
  }
}

TEST(goroutines_that_never_park, run_on_the_warm_stack_of_the_one_before) {
  const int count = static_cast<int>(test::scaled(100'000, 50'000, 20'000));
  weft::run(
      [&] {
        const auto before = read_sched_stats();
        std::atomic<int> ran = 0;
        for (int i = 0; i < count; ++i) weft::go([&ran] { ++ran; });
        test::await([&] { return ran == count; });
        const auto after = read_sched_stats();
        EXPECT_GT(after.stacks_inherited - before.stacks_inherited, static_cast<std::uint64_t>(count) * 9 / 10);
      },
      {.procs = 1});
}

TEST(goroutines_that_park_one_after_the_other, use_a_handful_of_stacks) {
  weft::run(
      [] {
        const auto before = read_sched_stats();
        for (int i = 0; i < 2000; ++i) weft::async([] { weft::yield(); }).get();
        EXPECT_LE(read_sched_stats().stacks_total - before.stacks_total, batch);
      },
      {.procs = 1});
}

TEST(a_stack, serves_any_number_of_goroutines_one_after_the_other) {
  weft::run(
      [] {
        // Each is given the stack anew, from the P's cache: we are behind it in the queue. More of them than TSan
        // allows a thread to have frames.
        for (int i = 0; i < 70'000; ++i) {
          std::atomic<bool> ran = false;
          weft::go([&ran] { ran = true; });
          while (!ran) weft::yield();
        }
      },
      {.procs = 1});
}

TEST(goroutines_that_are_parked_at_once, have_a_stack_each_and_leave_them_to_the_next) {
  const int count = static_cast<int>(test::scaled(3'000, 1'000, 500));
  weft::run(
      [&] {
        parked_crowd(count, 1).end();
        const auto before = read_sched_stats();
        EXPECT_GE(before.stacks_total, static_cast<std::uint64_t>(count));
        for (int i = 0; i < 3; ++i) parked_crowd(count, 1).end();
        EXPECT_LE(read_sched_stats().stacks_total - before.stacks_total, batch);
      },
      {.procs = 2});
}

TEST(a_stack_of_another_size, is_used_again_by_the_next_of_its_size) {
  weft::run(
      [] {
        const auto one = [] {
          event ended;
          weft::go({.name = "large", .stack_size = 1 << 20}, [&ended] { ended.set(); });
          ended.wait();
        };
        for (int i = 0; i < 10; ++i) one();
        const auto before = read_sched_stats();
        for (int i = 0; i < 1000; ++i) one();
        EXPECT_LE(read_sched_stats().stacks_total - before.stacks_total, batch);
      },
      {.procs = 2});
}

TEST(stack_sizes, are_rounded_up_to_a_power_of_two_within_limits) {
  using weft::sched::max_stack;
  using weft::sched::min_stack;
  using weft::sched::stack_class;
  EXPECT_EQ(stack_class(0), 0);
  EXPECT_EQ(stack_class(min_stack), 0);
  EXPECT_EQ(stack_class(min_stack + 1), 1);
  EXPECT_EQ(stack_class(weft::sched::default_stack), 4);
  EXPECT_EQ(stack_class(max_stack), weft::sched::stack_classes - 1);
  EXPECT_EQ(stack_class(2 * max_stack), weft::sched::stack_classes - 1);
}

// ---- pages that go back ---------------------------------------------------------------------------------------------

class stacks_that_lie_unused : public testing::Test {
 protected:
  static constexpr int procs = 2;
  static constexpr int pages = 8;
  const int count = static_cast<int>(test::scaled(2'000, 500, 300));

  // All but those in the Ps' caches, which stay warm.
  std::uint64_t most() const {
    return static_cast<std::uint64_t>(count) - static_cast<std::uint64_t>(procs) * processor::stack_cache_size;
  }

  // Has the crowd come and go; `wait` then waits until its condition holds.
  template <class Wait>
  void expect_pages_to_go_back(Wait wait) {
    const std::uint64_t returned = read_sched_stats().stacks_returned;
    std::size_t peak = 0;
    {
      parked_crowd crowd(count, pages);
      peak = resident_bytes();
      EXPECT_GE(peak, static_cast<std::size_t>(count) * pages * 4096);
    }
    wait([&] { return read_sched_stats().stacks_returned - returned >= most(); });
    // A sanitizer keeps its own notes on each page.
    if (test::under_sanitizer) return;
    EXPECT_LT(resident_bytes(), peak - most() * pages * 4096 * 8 / 10);
  }

  // They are as good as new.
  void expect_stacks_to_be_usable() {
    const std::uint64_t total = read_sched_stats().stacks_total;
    parked_crowd(count, pages).end();
    EXPECT_LE(read_sched_stats().stacks_total - total, batch);
  }
};

TEST_F(stacks_that_lie_unused, go_back_to_the_system_while_others_run) {
  weft::run(
      [this] {
        expect_pages_to_go_back([](auto condition) { test::await(condition); });
        expect_stacks_to_be_usable();
      },
      {.procs = procs});
}

TEST_F(stacks_that_lie_unused, go_back_to_the_system_while_nothing_runs) {
  weft::run(
      [this] {
        expect_pages_to_go_back([](auto condition) {
          event returned;
          std::thread observer([&] {
            test::await([&] {
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
              return condition();
            });
            returned.set();
          });
          returned.wait();  // with nobody else there: the runtime is idle
          observer.join();
        });
        expect_stacks_to_be_usable();
      },
      {.procs = procs});
}

}  // namespace
