// The short way of yield(), where there is one P (sched/yield_x86_64.S): everything that must be as on the long one, and what
// sends a goroutine there. Elsewhere and under sanitizers there is only the long way, and all but one of these tests hold too.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sched/preempt.h"
#include "sched/queues.h"
#include "sched/scheduler.h"
#include "sched/yield_layout.h"
#include "support/await.h"
#include "support/folder.h"
#include "support/one_slice.h"
#include "support/yielders.h"

namespace {

using namespace std::chrono_literals;
using test::yielders;
using weft::runtime::read_sched_stats;
using weft::sched::processor_at;

std::uint32_t short_yields() { return processor_at(0)->short_yields(); }

void on_one_p(std::function<void()> f) { weft::run([&] { f(); }, {.procs = 1}); }

TEST(a_short_yield, is_taken_where_goroutines_take_turns_on_one_p) {
  on_one_p([] {
    yielders others(3);
    for (int i = 0; i < 10; ++i) weft::yield();
    const std::uint32_t before = short_yields();
    std::uint32_t most = 0;
    for (int i = 0; i < 300; ++i) {
      weft::yield();
      most = std::max(most, static_cast<std::uint32_t>(processor_at(0)->short_yields_credit));
    }
    EXPECT_EQ(short_yields() - before > 900, WEFT_HAS_SHORT_YIELDS != 0);
    EXPECT_LE(most, weft::sched::fairness_ticks) << "then somebody looks around";
  });
}

TEST(a_short_yield, is_not_taken_where_there_are_two_ps) {
  weft::run(
      [] {
        yielders others(5);
        const std::uint64_t before = processor_at(0)->short_yields_credit;
        EXPECT_EQ(static_cast<std::uint32_t>(before), 0u);
        for (int i = 0; i < 10'000; ++i) {
          weft::yield();
          ASSERT_EQ(processor_at(0)->short_yields_credit, before);
          ASSERT_EQ(processor_at(1)->short_yields_credit, 0u);
        }
      },
      {.procs = 2});
}

TEST(goroutines_that_yield, take_turns) {
  on_one_p([] {
    const auto order = test::in_one_slice([] {
      std::vector<int> seen;
      std::vector<weft::future<void>> all;
      for (int g = 0; g < 5; ++g) {
        all.push_back(weft::async([&seen, g] {
          for (int i = 0; i < 200; ++i) {
            seen.push_back(g);
            weft::yield();
          }
        }));
      }
      weft::yield();
      for (auto& one : all) one.get();
      return seen;
    });
    ASSERT_EQ(order.size(), 1000u);
    for (std::size_t i = 5; i < order.size(); ++i) ASSERT_EQ(order[i], order[i - 5]) << i;
  });
}

TEST(yields, are_counted_one_by_one) {
  on_one_p([] {
    const auto before = read_sched_stats();
    std::vector<weft::future<void>> all;
    for (int g = 0; g < 7; ++g) {
      all.push_back(weft::async([] {
        for (int i = 0; i < 1000; ++i) weft::yield();
      }));
    }
    for (auto& one : all) one.get();
    const auto after = read_sched_stats();
    EXPECT_EQ(after.yields - before.yields, 7000u);
    EXPECT_GE(after.picks - before.picks, 7000u);
    EXPECT_LE(after.picks - before.picks, 7000u + 7 * 10 + 500) << "twice for those that are stopped in their slice";
  });
}

TEST(counts, do_not_go_back_while_goroutines_yield) {
  on_one_p([] {
    yielders others(3);
    std::atomic<bool> stop = false;
    std::thread reader([&] {
      auto before = read_sched_stats();
      for (int i = 0; i < 100'000 && !stop; ++i) {
        const auto now = read_sched_stats();
        ASSERT_GE(now.yields, before.yields);
        ASSERT_GE(now.picks, before.picks);
        ASSERT_LT(now.yields - before.yields, 1'000'000'000u);
        ASSERT_LT(now.picks - before.picks, 1'000'000'000u);
        before = now;
      }
    });
    weft::sleep_for(200ms);
    stop = true;
    reader.join();
  });
}

// What the compiler keeps in registers across a call, whichever these are.
[[gnu::noinline]] std::uint64_t mix_over_yields(std::uint64_t seed, int n) {
  std::uint64_t a = seed, b = seed * 3, c = seed * 5, d = seed * 7, e = seed * 11, f = seed * 13, g = seed * 17;
  double x = static_cast<double>(seed);
  for (int i = 0; i < n; ++i) {
    weft::yield();
    a += b ^ c, b += c ^ d, c += d ^ e, d += e ^ f, e += f ^ g, f += g ^ a, g += a ^ b;
    x = x / 2 + 1;
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ static_cast<std::uint64_t>(x);
}

TEST(a_goroutine_that_yields, finds_its_registers_as_they_were) {
  std::vector<std::uint64_t> expected;
  for (std::uint64_t seed = 1; seed <= 9; ++seed) expected.push_back(mix_over_yields(seed, 3000));  // here yields do nothing
  on_one_p([&] {
    std::vector<weft::future<std::uint64_t>> all;
    for (std::uint64_t seed = 1; seed <= 9; ++seed) all.push_back(weft::async([seed] { return mix_over_yields(seed, 3000); }));
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].get(), expected[i]);
  });
}

TEST(a_goroutine_that_yields, keeps_its_errno_beside_others_that_have_another_or_the_same) {
  on_one_p([] {
    bool begun[4] = {};
    yielders others(4, [&begun](int g) {
      const int mine = g < 2 ? 0 : g;
      if (begun[g]) {
        EXPECT_EQ(errno, mine);
      }
      begun[g] = true;
      errno = mine;
    });
    for (int i = 0; i < 5000; ++i) {
      errno = i % 3;
      weft::yield();
      ASSERT_EQ(errno, i % 3);
    }
  });
}

TEST(a_goroutine_that_yields, keeps_its_exceptions) {
  on_one_p([] {
    yielders others(3, [](int) { EXPECT_EQ(std::uncaught_exceptions(), 0); });
    struct at_exit {
      ~at_exit() {
        for (int i = 0; i < 20; ++i) weft::yield();
        EXPECT_EQ(std::uncaught_exceptions(), 1);
      }
    };
    for (int i = 0; i < 100; ++i) {
      try {
        at_exit late;
        throw i;
      } catch (int caught) {
        for (int k = 0; k < 20; ++k) weft::yield();
        EXPECT_EQ(caught, i);
        EXPECT_TRUE(std::current_exception() != nullptr);
      }
      EXPECT_TRUE(std::current_exception() == nullptr);
      weft::yield();
    }
  });
}

TEST(a_goroutine_locked_to_its_thread, stays_there_among_others_that_yield) {
  on_one_p([] {
    yielders others(3);
    weft::async([] {
      weft::lock_os_thread();
      const auto here = std::this_thread::get_id();
      for (int i = 0; i < 300; ++i) {
        weft::yield();
        ASSERT_EQ(std::this_thread::get_id(), here);
      }
      weft::unlock_os_thread();
    }).get();
  });
}

TEST(goroutines_that_yield, let_new_ones_woken_ones_and_those_from_outside_run) {
  on_one_p([] {
    weft::chan<int> c;
    std::atomic<int> born = 0, from_outside = 0;
    yielders others(3, [&](int) {
      if (born < 200) weft::go([&] { ++born; });
    });
    auto receiver = weft::async([c] {
      int sum = 0;
      for (int i : c) {
        sum += i;
        weft::yield();
      }
      return sum;
    });
    std::thread outside([&] {
      for (int i = 0; i < 100; ++i) weft::go([&] { ++from_outside; });
    });
    for (int i = 0; i < 500; ++i) {
      c.send(i);
      weft::yield();
    }
    c.close();
    EXPECT_EQ(receiver.get(), 500 * 499 / 2);
    test::await([&] { return born >= 200 && from_outside == 100; });
    outside.join();
  });
}

TEST(goroutines_that_yield, do_not_keep_a_sleeper_from_waking) {
  on_one_p([] {
    yielders others(3);
    const auto runs = read_sched_stats().timers_run;
    for (int i = 0; i < 20; ++i) weft::sleep_for(100us);
    EXPECT_GE(read_sched_stats().timers_run - runs, 20u);
  });
}

TEST(goroutines_that_yield, go_on_while_ps_come_and_go_and_traces_begin_and_end) {
  const test::folder folder;
  on_one_p([&] {
    std::atomic<std::uint64_t> turns = 0;
    {
      yielders others(6, [&](int) { ++turns; });
      for (int i = 0; i < 100; ++i) {
        weft::runtime::set_max_procs(1 + i % 3);
        if (i % 10 == 3) weft::trace::start((folder / "trace").string());
        if (i % 10 == 8) weft::trace::stop();
        const std::uint64_t before = turns;
        test::await([&] { return turns > before + 500; });
      }
    }
    weft::runtime::set_max_procs(1);
  });
}

[[gnu::noinline]] void yield_deep_inside(std::atomic<bool>& stop, int depth) {
  if (depth > 0) {
    yield_deep_inside(stop, depth - 1);
  } else {
    while (!stop) weft::yield();
  }
  asm volatile("");  // not a tail call
}

TEST(a_dump, shows_where_goroutines_yield) {
  on_one_p([] {
    std::atomic<bool> stop = false;
    std::vector<weft::future<void>> all;
    for (int i = 0; i < 3; ++i) all.push_back(weft::async([&] { yield_deep_inside(stop, 4); }));
    for (int i = 0; i < 100; ++i) weft::yield();
    std::ostringstream out;
    weft::runtime::dump_goroutines(out);
    stop = true;
    for (auto& one : all) one.get();
    const std::string text = out.str();
    const std::string frame = R"(\(anonymous namespace\)::yield_deep_inside\(.*\n.*\n)";
    const std::regex stack(R"(\[runnable\]:\n(weft::yield\(\)\n.*\n)?()" + frame + "){5}");
    EXPECT_TRUE(std::regex_search(text, stack)) << text;
    EXPECT_EQ(text.find("attend_and_leave"), text.npos) << text;
  });
}

}  // namespace
