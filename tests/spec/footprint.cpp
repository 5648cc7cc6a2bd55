// What goroutines cost in memory, and an idle runtime in time. Each claim is measured in a fresh process.
#include <gtest/gtest.h>
#include <unistd.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/await.h"
#include "support/build.h"
#include "support/cpu_time.h"
#include "support/subprocess.h"

namespace {

// A goroutine that keeps its P shall keep it, or what waits for it would run. (Without preemption there is no such
// setting, and no need for it.)
const test::environment measured{{"WEFTDEBUG", "asyncpreemptoff=1"}};

long resident_bytes() {
  std::FILE* const statm = std::fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;
  if (statm == nullptr || std::fscanf(statm, "%ld %ld", &total, &resident) != 2) std::abort();
  std::fclose(statm);
  return resident * ::sysconf(_SC_PAGESIZE);
}

// The number that the scenario printed.
long number_from(const test::scenario& scenario) {
  const auto end = scenario.run(measured);
  EXPECT_EQ(end.exit_code, 0) << end;
  return end.out.empty() ? -1 : std::atol(end.out.c_str());
}

class footprint : public testing::Test {
 protected:
  void SetUp() override {
    if (test::under_sanitizer) GTEST_SKIP() << "a sanitizer has a footprint of its own";
  }
};

constexpr long many = 1'000'000;

const test::scenario bytes_per_queued_goroutine("bytes_per_queued_goroutine", [] {
  static std::atomic<long> ran = 0;
  static std::atomic<bool> keeps_the_p = false;
  static std::atomic<bool> release = false;
  weft::start({.procs = 1});
  weft::go([] {
    keeps_the_p = true;
    test::spin_until([] { return release.load(); });
  });
  test::await([] { return keeps_the_p.load(); });
  const long before = resident_bytes();
  for (long i = 0; i < many; ++i) weft::go([i, counter = &ran] { *counter += i >= 0; });
  const long after = resident_bytes();
  if (ran != 0) std::abort();
  release = true;
  test::await([] { return ran == many; });
  std::printf("%ld\n", (after - before) / many);
});

TEST_F(footprint, of_a_queued_goroutine_is_at_most_128_bytes) {
  const long bytes = number_from(bytes_per_queued_goroutine);
  RecordProperty("bytes", std::to_string(bytes));
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, 128);
}

constexpr long many_parked = 200'000;

const test::scenario bytes_per_parked_goroutine("bytes_per_parked_goroutine", [] {
  weft::run(
      [] {
        std::atomic<bool> release = false;
        std::atomic<long> begun = 0;
        std::atomic<long> ended = 0;
        const auto gate = weft::async([&] { test::await([&] { return release.load(); }); });
        const long before = resident_bytes();
        for (long i = 0; i < many_parked; ++i) {
          weft::go([&] {
            ++begun;
            gate.wait();
            ++ended;
          });
          if (i % 100 == 0) test::await([&] { return begun > i; });
        }
        test::await([&] { return begun == many_parked; });
        const long after = resident_bytes();
        release = true;
        test::await([&] { return ended == many_parked; });
        std::printf("%ld\n", (after - before) / many_parked);
      },
      {.procs = 2});
});

TEST_F(footprint, of_a_parked_goroutine_is_at_most_a_page_and_600_bytes) {
  const long bytes = number_from(bytes_per_parked_goroutine);
  RecordProperty("bytes", std::to_string(bytes));
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, ::sysconf(_SC_PAGESIZE) + 600);
}

const test::scenario bytes_per_goroutine_parked_on_its_own_future("bytes_per_goroutine_parked_on_its_own_future", [] {
  weft::run(
      [] {
        std::atomic<bool> release = false;
        std::atomic<long> begun = 0;
        auto last = weft::async([&] { test::await([&] { return release.load(); }); });
        const long before = resident_bytes();
        for (long i = 0; i < many_parked; ++i) {
          last = weft::async([&, f = std::move(last)] {
            ++begun;
            f.wait();
          });
          if (i % 100 == 0) test::await([&] { return begun > i; });
        }
        test::await([&] { return begun == many_parked; });
        const long after = resident_bytes();
        release = true;
        last.get();
        std::printf("%ld\n", (after - before) / many_parked);
      },
      {.procs = 2});
});

TEST_F(footprint, of_a_goroutine_parked_on_its_own_future_is_at_most_a_page_and_600_bytes) {
  const long bytes = number_from(bytes_per_goroutine_parked_on_its_own_future);
  RecordProperty("bytes", std::to_string(bytes));
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, ::sysconf(_SC_PAGESIZE) + 600);
}

const test::scenario growth_over_many_runs("growth_over_many_runs", [] {
  const auto generation = [] {
    weft::run(
        [] {
          std::vector<weft::future<void>> all;
          for (int i = 0; i < 10'000; ++i) all.push_back(weft::async([] { weft::yield(); }));
          for (auto& one : all) one.get();
          for (int i = 0; i < 10'000; ++i) {
            weft::go({.name = "named", .stack_size = 64 * 1024}, [large = std::vector<char>(200)] { weft::yield(); });
          }
          test::await([] { return weft::runtime::num_goroutine() == 1; });
        },
        {.procs = 2});
  };
  // Stacks that lie unused go back to the system now and then: the most there was at first, the least at last.
  long before = 0;
  for (int i = 0; i < 5; ++i) {
    generation();
    before = std::max(before, resident_bytes());
  }
  for (int i = 0; i < 45; ++i) generation();
  long after = std::numeric_limits<long>::max();
  for (int i = 0; i < 5; ++i) {
    generation();
    after = std::min(after, resident_bytes());
  }
  std::printf("%ld\n", (after - before) / 1024);
});

TEST_F(footprint, does_not_grow_with_the_goroutines_that_have_ended) {
  // A million goroutines came and went; 20 MB would be 20 bytes of each.
  EXPECT_LT(number_from(growth_over_many_runs), 20'000);
}

[[gnu::noinline]] std::size_t use_stack(std::size_t bytes) {
  volatile char block[1024];
  for (std::size_t i = 0; i < sizeof block; i += 64) block[i] = 1;
  const std::size_t below = bytes > 1024 ? use_stack(bytes - 1024) : 0;
  return below + static_cast<std::size_t>(block[0]);
}

const test::scenario idle_stacks("idle_stacks", [] {
  constexpr int count = 1000;
  constexpr std::size_t used = 200 * 1024;
  weft::start({.procs = 2});
  const long before = resident_bytes();
  std::atomic<int> deep = 0;
  std::atomic<bool> measured_peak = false;
  for (int i = 0; i < count; ++i) {
    weft::go([&] {
      use_stack(used);
      ++deep;
      test::await([&] { return measured_peak.load(); });
    });
  }
  test::await([&] { return deep == count; });
  const long peak = resident_bytes() - before;
  if (peak < static_cast<long>(count * used / 2)) std::puts("the stacks were not used at all, or given back already");
  measured_peak = true;
  test::await([] { return weft::runtime::num_goroutine() == 0; });
  test::await([&] { return resident_bytes() - before < static_cast<long>(count * used / 4); });
  std::puts("given back");
});

TEST_F(footprint, of_idle_stacks_is_given_back_to_the_system) {
  const auto end = idle_stacks.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.out, "given back\n");
}

constexpr long no_cpu_time = 2000;

// Microseconds of CPU time in which the whole process did nothing for two seconds. The sleep is the measurement.
long idle_cpu_time() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return test::least_cpu_time(std::chrono::seconds(2), std::chrono::microseconds(no_cpu_time), 5).count();
}

const test::scenario cpu_time_of_an_idle_runtime("cpu_time_of_an_idle_runtime", [] {
  weft::start({.procs = 8});
  for (int i = 0; i < 100; ++i) weft::async([] { weft::yield(); }).get();
  std::printf("%ld\n", idle_cpu_time());
});

TEST_F(footprint, of_an_idle_runtime_is_no_cpu_time) {
  EXPECT_LE(number_from(cpu_time_of_an_idle_runtime), no_cpu_time) << "microseconds in 2 s are more than 0.1 %";
}

const test::scenario cpu_time_beside_parked_goroutines("cpu_time_beside_parked_goroutines", [] {
  weft::start({.procs = 8});
  // A ring of goroutines that wait for each other, for ever.
  static weft::future<void> ring[2];
  static std::atomic<bool> closed = false;
  static std::atomic<int> begun = 0;
  ring[0] = weft::async([] {
    test::await([] { return closed.load(); });
    ring[1].wait();
  });
  ring[1] = weft::async([] {
    test::await([] { return closed.load(); });
    ring[0].wait();
  });
  closed = true;
  for (int i = 0; i < 10'000; ++i) {
    weft::go([] {
      ++begun;
      ring[0].wait();
    });
  }
  test::await([] { return begun == 10'000; });
  std::printf("%ld\n", idle_cpu_time());
  std::fflush(stdout);
  std::_Exit(0);
});

TEST_F(footprint, of_parked_goroutines_is_no_cpu_time) {
  EXPECT_LE(number_from(cpu_time_beside_parked_goroutines), no_cpu_time) << "microseconds in 2 s are more than 0.1 %";
}

}  // namespace
