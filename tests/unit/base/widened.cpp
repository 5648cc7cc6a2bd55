// A count of 32 bits that readers see as one of 64.
#include "base/widened.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::base::widened;

std::uint64_t read(const widened& w, std::uint32_t narrow) {
  return w.read([narrow] { return narrow; });
}

TEST(a_widened_count, is_the_narrow_one_at_first) {
  widened w;
  EXPECT_EQ(read(w, 0), 0u);
  EXPECT_EQ(read(w, 5), 5u);
  EXPECT_EQ(w.note(7), 7u);
  EXPECT_EQ(read(w, 7), 7u);
  EXPECT_EQ(read(w, 9), 9u);
}

TEST(a_widened_count, goes_on_where_the_narrow_one_begins_anew) {
  widened w;
  std::uint32_t narrow = 0;
  std::uint64_t all = 0;
  for (int i = 0; i < 100; ++i) {
    constexpr std::uint32_t step = 0x7000'0123;
    narrow += step;
    all += step;
    EXPECT_EQ(read(w, narrow), all);
    EXPECT_EQ(w.note(narrow), step);
    EXPECT_EQ(read(w, narrow), all);
  }
  EXPECT_GT(all, std::uint64_t{1} << 32);
}

}  // namespace
