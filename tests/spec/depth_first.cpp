// A goroutine that waits lets the newest of those run that it has spawned, once many are queued: a tree of goroutines is
// walked depth first, and few of them have a stack at a time. With few in the queue it is oldest first, as ever.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <vector>

#include "support/build.h"
#include "support/one_slice.h"
#include "support/without_preemption.h"

namespace {

weft::runtime::sched_stats stats() { return weft::runtime::read_sched_stats(); }

constexpr std::uint64_t leaves = test::under_sanitizer ? 10'000 : 100'000;

// The sum of the leaves' numbers, by way of channels.
void node(weft::chan<std::uint64_t> parent, std::uint64_t first, std::uint64_t size) {
  if (size == 1) return parent.send(first);
  weft::chan<std::uint64_t> children;
  const std::uint64_t part = size / 10;
  for (std::uint64_t i = 0; i < 10; ++i) weft::go(node, children, first + i * part, part);
  std::uint64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum += *children.recv();
  parent.send(sum);
}

std::uint64_t tree(std::uint64_t size) {
  weft::chan<std::uint64_t> result;
  weft::go(node, result, 0, size);
  return *result.recv();
}

class depth_first : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(with_procs, depth_first, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(depth_first, is_how_a_tree_is_walked) {
  weft::run(
      [] {
        const auto before = stats();
        EXPECT_EQ(tree(leaves), leaves * (leaves - 1) / 2);
        const auto after = stats();
        EXPECT_GT(after.depth_first - before.depth_first, leaves / 100);
        // Oldest first, most of those that wait for others, a ninth of the leaves, would wait at the same time.
        EXPECT_LT(after.stacks_total - before.stacks_total, leaves / 20);
      },
      {.procs = GetParam()});
}

// The same sum by wait groups: whoever waits for its children lends its stack to them.
std::uint64_t joined_tree(std::uint64_t first, std::uint64_t size) {
  if (size == 1) return first;
  std::array<std::uint64_t, 10> sums{};
  weft::wait_group wg;
  for (std::uint64_t i = 0; i < 10; ++i) {
    wg.go([&sum = sums[i], first = first + i * (size / 10), size] { sum = joined_tree(first, size / 10); });
  }
  wg.wait();
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

TEST_P(depth_first, is_how_a_tree_of_wait_groups_is_walked) {
  weft::run(
      [] {
        const auto before = stats();
        EXPECT_EQ(joined_tree(0, leaves), leaves * (leaves - 1) / 2);
        const auto after = stats();
        EXPECT_LT(after.stacks_total - before.stacks_total, leaves / 100);
        if (GetParam() == 1) {  // nobody steals
          EXPECT_GT(after.joined_in_place - before.joined_in_place, leaves / 2);
        }
      },
      {.procs = GetParam()});
}

// What is older gets its turn at the end of a slice at the latest.
TEST_P(depth_first, does_not_starve_what_is_older) {
  weft::run(
      [] {
        std::atomic<bool> stop{false};
        std::atomic<int> ran{0};
        weft::wait_group wg;
        wg.add(100);
        for (int i = 0; i < 100; ++i) {
          weft::go([&] {
            ++ran;
            wg.done();
          });
        }
        weft::future<void> parent = weft::async([&] {
          // For ever children to go before the others.
          while (!stop) {
            weft::chan<int> done;
            for (int i = 0; i < 50; ++i) weft::go([done]() mutable { done.send(1); });
            for (int i = 0; i < 50; ++i) done.recv();
          }
        });
        wg.wait();
        stop = true;
        parent.get();
        EXPECT_EQ(ran, 100);
      },
      {.procs = GetParam()});
}

// Not a tree: nobody waits for the one that waits.
TEST(many_goroutines, that_one_waits_for_run_oldest_first_but_for_the_last) {
  weft::run(
      [] {
        const auto order = test::in_one_slice([] {
          std::vector<int> order;
          weft::wait_group wg;
          for (int i = 0; i < 100; ++i) wg.go([&order, i] { order.push_back(i); });
          wg.wait();
          return order;
        });
        std::vector<int> expected{99};
        for (int i = 0; i < 99; ++i) expected.push_back(i);
        EXPECT_EQ(order, expected);
      },
      {.procs = 1});
}

TEST(few_goroutines, run_oldest_first_but_for_the_last) {
  weft::run(
      [] {
        const auto order = test::in_one_slice([] {
          std::vector<int> order;
          weft::chan<int> done;
          for (int i = 0; i < 10; ++i) {
            weft::go([&order, done, i]() mutable {
              order.push_back(i);
              done.send(i);
            });
          }
          for (int i = 0; i < 10; ++i) done.recv();
          return order;
        });
        EXPECT_EQ(order, (std::vector<int>{9, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
      },
      {.procs = 1});
}

}  // namespace
