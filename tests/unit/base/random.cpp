// The generator of scheduling decisions.
#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace {

using weft::base::random;

TEST(random_below, stays_below_its_bound) {
  random r(1);
  for (const std::uint32_t bound : {1u, 2u, 3u, 61u, 64u, 1000u, 1u << 31, std::numeric_limits<std::uint32_t>::max()}) {
    for (int i = 0; i < 2000; ++i) ASSERT_LT(r.below(bound), bound);
  }
}

TEST(random_below, reaches_every_value_about_equally_often) {
  for (const std::uint32_t bound : {2u, 3u, 7u, 32u}) {
    constexpr int draws_each = 1000;
    random r(bound);
    std::vector<int> hits(bound);
    for (std::uint32_t i = 0; i < bound * draws_each; ++i) ++hits[r.below(bound)];
    EXPECT_GT(*std::min_element(hits.begin(), hits.end()), draws_each / 2) << "of " << bound;
    EXPECT_LT(*std::max_element(hits.begin(), hits.end()), draws_each * 2) << "of " << bound;
  }
}

TEST(random_below, of_nothing_is_zero) {
  random r(5);
  EXPECT_EQ(r.below(0), 0u);
  EXPECT_EQ(r.below(1), 0u);
}

TEST(a_random_generator, gives_the_same_numbers_for_the_same_seed) {
  random a(42);
  random b(42);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(a_random_generator, gives_other_numbers_for_another_seed) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) first.insert(random(seed).next());
  EXPECT_GT(first.size(), 990u);
}

TEST(a_random_generator, takes_every_seed) {
  for (const std::uint64_t seed : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    random r(seed);
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 1000; ++i) seen.insert(r.next());
    EXPECT_GT(seen.size(), 990u) << seed;
  }
}

}  // namespace
