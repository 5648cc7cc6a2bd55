// The one-shot sleep of a thread.
#include "base/note.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "os/clock.h"
#include "support/build.h"

namespace {

using weft::base::note;
using weft::os::now_ns;

constexpr std::int64_t millisecond = 1'000'000;
constexpr std::int64_t long_enough_ns = 100'000 * millisecond;

TEST(a_note, that_was_woken_before_does_not_sleep) {
  note n;
  n.wake();
  n.sleep();
}

TEST(a_note, wakes_its_sleeper) {
  note n;
  std::atomic<bool> about_to_sleep = false;
  std::thread sleeper([&] {
    about_to_sleep = true;
    n.sleep();
  });
  while (!about_to_sleep) std::this_thread::yield();
  n.wake();
  sleeper.join();
}

TEST(a_note, can_be_used_again_and_again) {
  const int rounds = static_cast<int>(test::scaled(20'000, 5'000, 3'000));
  note ping;
  note pong;
  int turns = 0;  // not atomic: the notes order the two threads
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      ping.sleep();
      ++turns;
      pong.wake();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ping.wake();
    pong.sleep();
    ASSERT_EQ(turns, i + 1);
  }
  other.join();
}

TEST(a_note, that_sleeps_until_a_time_gives_up_then_and_not_before) {
  note n;
  const std::int64_t deadline = now_ns() + 5 * millisecond;
  EXPECT_FALSE(n.sleep_until(deadline));
  EXPECT_GE(now_ns(), deadline);
}

TEST(a_note, gives_up_at_once_if_the_time_has_passed) {
  note n;
  EXPECT_FALSE(n.sleep_until(now_ns() - 1));
  EXPECT_FALSE(n.sleep_until(0));
}

TEST(a_note, that_was_woken_before_is_so_whatever_the_time) {
  note n;
  n.wake();
  EXPECT_TRUE(n.sleep_until(now_ns() - 1));
}

TEST(a_note, is_woken_before_its_time) {
  note n;
  std::thread waker([&] { n.wake(); });
  EXPECT_TRUE(n.sleep_until(now_ns() + long_enough_ns));
  waker.join();
}

TEST(a_note, is_clear_after_a_timeout_and_can_be_used_again) {
  note n;
  EXPECT_FALSE(n.sleep_until(now_ns() - 1));
  n.wake();
  n.sleep();
  EXPECT_FALSE(n.sleep_until(now_ns() - 1));
}

TEST(a_note, is_clear_after_a_sleep_that_did_not_time_out) {
  note n;
  n.wake();
  EXPECT_TRUE(n.sleep_until(now_ns() + long_enough_ns));
  EXPECT_FALSE(n.sleep_until(now_ns() - 1));
}

TEST(a_note, that_is_woken_twice_is_fatal) {
  note n;
  n.wake();
  EXPECT_DEATH(n.wake(), "fatal error: a note was woken twice");
  n.sleep();
}

TEST(wake_if_clear, wakes_the_sleeper_however_many_try) {
  note n;
  n.wake_if_clear();
  n.wake_if_clear();
  n.sleep();
  EXPECT_FALSE(n.sleep_until(now_ns() - 1));
}

TEST(a_note, shows_the_sleeper_what_the_waker_wrote) {
  for (int i = 0; i < 200; ++i) {
    note n;
    int written = 0;
    std::thread waker([&] {
      written = i + 1;
      n.wake();
    });
    n.sleep();
    EXPECT_EQ(written, i + 1);
    waker.join();
  }
}

}  // namespace
