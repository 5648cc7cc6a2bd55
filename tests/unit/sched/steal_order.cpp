// The ways of thieves over the Ps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "base/random.h"
#include "sched/steal.h"

namespace {

using weft::sched::max_procs_limit;
using weft::sched::steal_order;

std::unique_ptr<steal_order> order_of(std::uint32_t count) {
  auto order = std::make_unique<steal_order>();
  order->reset(count);
  return order;
}

std::vector<std::uint32_t> walk(const steal_order& order, std::uint32_t seed) {
  std::vector<std::uint32_t> visited;
  order.walk(seed, [&](std::uint32_t at) {
    visited.push_back(at);
    return false;
  });
  return visited;
}

bool visits_each_once(std::vector<std::uint32_t> visited, std::uint32_t count) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  std::sort(visited.begin(), visited.end());
  return visited == all;
}

std::uint32_t coprimes_to(std::uint32_t count) {
  std::uint32_t n = 0;
  for (std::uint32_t i = 1; i <= count; ++i) n += std::gcd(i, count) == 1 ? 1 : 0;
  return n;
}

TEST(every_walk, visits_every_p_exactly_once) {
  weft::base::random dice(1);
  for (std::uint32_t count = 1; count <= 64; ++count) {
    const auto order = order_of(count);
    for (std::uint32_t seed = 0; seed < 2 * count * coprimes_to(count); ++seed) {
      ASSERT_TRUE(visits_each_once(walk(*order, seed), count)) << count << " Ps, seed " << seed;
    }
    for (int i = 0; i < 100; ++i) {
      const std::uint32_t seed = dice.next();
      ASSERT_TRUE(visits_each_once(walk(*order, seed), count)) << count << " Ps, seed " << seed;
    }
  }
}

TEST(every_walk, visits_every_p_exactly_once_however_many_there_are) {
  weft::base::random dice(2);
  for (const std::uint32_t count : {100u, 255u, 256u, 1000u, static_cast<std::uint32_t>(max_procs_limit)}) {
    const auto order = order_of(count);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(visits_each_once(walk(*order, dice.next()), count)) << count << " Ps";
  }
}

TEST(walks_with_different_seeds, take_every_way_that_there_is) {
  for (std::uint32_t count = 1; count <= 64; ++count) {
    const auto order = order_of(count);
    const std::uint32_t ways = count * coprimes_to(count);
    std::set<std::vector<std::uint32_t>> seen;
    for (std::uint32_t seed = 0; seed < ways; ++seed) seen.insert(walk(*order, seed));
    EXPECT_EQ(seen.size(), ways) << count << " Ps";
  }
}

TEST(walks_with_different_seeds, begin_everywhere_equally_often) {
  constexpr std::uint32_t count = 8;
  const auto order = order_of(count);
  weft::base::random dice(3);
  std::vector<int> first(count);
  for (int i = 0; i < 8000; ++i) ++first[walk(*order, dice.next()).front()];
  EXPECT_GT(*std::min_element(first.begin(), first.end()), 500);
}

TEST(a_walk, ends_when_the_visitor_says_so) {
  const auto order = order_of(10);
  int visited = 0;
  order->walk(7, [&](std::uint32_t) { return ++visited == 4; });
  EXPECT_EQ(visited, 4);
}

TEST(a_walk, over_nothing_visits_nothing) { EXPECT_TRUE(walk(*order_of(0), 5).empty()); }

TEST(a_steal_order, follows_the_number_of_ps) {
  steal_order order;
  for (const std::uint32_t count : {1u, 8u, 2u, 32u, 3u}) {
    order.reset(count);
    for (std::uint32_t seed = 0; seed < 200; ++seed) ASSERT_TRUE(visits_each_once(walk(order, seed), count));
  }
}

}  // namespace
