// Whether something is chosen uniformly.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "support/build.h"

namespace test {

inline constexpr int draws = scaled(20'000, 4'000, 4'000);

// Each of the `count` outcomes came up about as often as the others. With n draws the count of one has a standard
// deviation below sqrt(n / count); eight of those do not happen by chance.
inline void expect_uniform(const std::vector<int>& count) {
  double n = 0;
  for (const int c : count) n += c;
  const double mean = n / static_cast<double>(count.size());
  for (std::size_t i = 0; i < count.size(); ++i) {
    EXPECT_NEAR(count[i], mean, 8 * std::sqrt(mean)) << "case " << i;
  }
}

}  // namespace test
