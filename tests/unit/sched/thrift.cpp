// How much looking in vain there may be. The only user of the credit here, in a time of its own.
#include "sched/thrift.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::sched::looked_in_vain;
using weft::sched::may_look;
using weft::sched::worked;

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000'000;

class thrift : public testing::Test {
 protected:
  // A program that looks as long as it may, `each` at a time: how much of `span` it spends on that.
  std::int64_t look_for(std::int64_t span, std::int64_t each, std::int64_t work_each) {
    std::int64_t looked = 0;
    for (const std::int64_t end = now + span; now < end;) {
      now += work_each;
      worked(work_each);
      if (may_look(now)) {
        looked_in_vain(each);
        looked += each;
      }
      now += each;
    }
    return looked;
  }

  static inline std::int64_t now = 1000 * ms;
};

TEST_F(thrift, lets_who_has_nothing_to_do_look_for_an_eighth_of_the_time) {
  look_for(100 * ms, 50 * us, 0);  // what was saved is used up
  const std::int64_t looked = look_for(800 * ms, 50 * us, 0);
  EXPECT_GE(looked, 95 * ms);
  EXPECT_LE(looked, 105 * ms);
}

TEST_F(thrift, lets_who_works_look_for_half_as_long_as_well) {
  look_for(100 * ms, 50 * us, 0);
  const std::int64_t looked = look_for(800 * ms, 50 * us, 50 * us);  // works half of the time
  EXPECT_GE(looked, 290 * ms);
  EXPECT_LE(looked, 310 * ms);
}

TEST_F(thrift, saves_no_more_than_is_good_for_a_moment) {
  now += 10'000 * ms;
  worked(10'000 * ms);
  std::int64_t looked = 0;
  while (may_look(now)) {
    looked_in_vain(50 * us);
    looked += 50 * us;
    ASSERT_LE(looked, 3 * ms);
  }
  EXPECT_GE(looked, 1 * ms);
}

}  // namespace
