// When a thief leaves goroutines where they are, and for how long.
#include "gmp/hauls.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::gmp::hauls;

constexpr std::int64_t good = hauls::poor_ns, poor = hauls::poor_ns - 1;

void make(hauls& h, std::uint32_t goroutines, std::int64_t worth) {
  h.took(goroutines);
  h.ran_dry(worth);
}

TEST(a_thief, takes_everything_as_long_as_it_pays) {
  hauls h;
  EXPECT_FALSE(h.leaves(1, 0));
  make(h, 1, good);
  EXPECT_FALSE(h.leaves(1, 0));
  EXPECT_FALSE(h.leaves(100, 0));
}

TEST(a_thief, leaves_the_like_of_a_poor_haul_for_a_while) {
  hauls h;
  make(h, 3, poor);
  for (std::uint32_t n = 1; n <= 6; ++n) EXPECT_TRUE(h.leaves(n, 0)) << n;
  EXPECT_FALSE(h.leaves(7, 0)) << "half of it is more than the last time";
  EXPECT_TRUE(h.leaves(1, hauls::first_patience_ns - 1));
  EXPECT_FALSE(h.leaves(1, hauls::first_patience_ns));
}

TEST(a_thief, is_more_patient_each_time_but_only_so_much) {
  hauls h;
  std::int64_t expected = hauls::first_patience_ns;
  for (int i = 0; i < 10; ++i) {
    make(h, 1, poor);
    EXPECT_TRUE(h.leaves(1, expected - 1));
    EXPECT_FALSE(h.leaves(1, expected));
    expected = std::min(2 * expected, hauls::most_patience_ns);
  }
  EXPECT_EQ(expected, hauls::most_patience_ns);
}

TEST(a_thief, forgets_poor_hauls_after_a_good_one) {
  hauls h;
  make(h, 1, poor);
  make(h, 1, poor);
  make(h, 1, good);
  EXPECT_FALSE(h.leaves(1, 0));
  make(h, 1, poor);
  EXPECT_FALSE(h.leaves(1, hauls::first_patience_ns));
}

TEST(a_thief, judges_only_what_it_has_stolen) {
  hauls h;
  make(h, 1, poor);
  h.ran_dry(good);  // of what came from elsewhere
  EXPECT_TRUE(h.leaves(1, 0));
  h.took(0);
  h.ran_dry(poor);
  EXPECT_FALSE(h.leaves(1, hauls::first_patience_ns));
}

}  // namespace
