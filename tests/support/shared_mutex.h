// What is asked of a shared_mutex whether its readers have spread out or not.
#pragma once

#include <gtest/gtest.h>
#include <weft/weft.h>

#include "support/await.h"

namespace test {

// Of a lock that nobody else uses.
inline void expect_that_try_locks_say_what_may_be_had(weft::shared_mutex& m) {
  m.lock_shared();
  EXPECT_TRUE(m.try_lock_shared());
  EXPECT_FALSE(m.try_lock());
  EXPECT_TRUE(m.try_lock_shared());  // what a writer tried in vain is over
  m.unlock_shared();
  m.unlock_shared();
  EXPECT_FALSE(m.try_lock());
  m.unlock_shared();
  EXPECT_TRUE(m.try_lock());
  EXPECT_FALSE(m.try_lock_shared());
  EXPECT_FALSE(m.try_lock());
  m.unlock();
}

// For a reader: until a writer waits, which is when a reader is not let in any more.
inline void await_waiting_writer(weft::shared_mutex& m) {
  await([&] {
    if (!m.try_lock_shared()) return true;
    m.unlock_shared();
    return false;
  });
}

}  // namespace test
