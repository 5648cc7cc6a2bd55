// The two calls that everything that sleeps is made of.
#include "base/futex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include "os/clock.h"

namespace {

using weft::base::futex_wait;
using weft::base::futex_wait_until;
using weft::base::futex_wake;
using weft::base::futex_word;
using weft::os::now_ns;

constexpr int some_errno = 4321;

// Runs the call with an errno of our own, and says what is left of it.
template <class Call>
int errno_after(Call call) {
  errno = some_errno;
  call();
  return errno;
}

TEST(futex_wait, leaves_errno_alone_when_the_word_has_changed) {
  futex_word word{1};
  EXPECT_EQ(errno_after([&] { futex_wait(word, 0); }), some_errno);
  EXPECT_EQ(errno_after([&] { futex_wait_until(word, 0, now_ns() + 1'000'000'000); }), some_errno);
}

TEST(futex_wait_until, leaves_errno_alone_when_the_time_comes) {
  futex_word word{0};
  EXPECT_EQ(errno_after([&] { futex_wait_until(word, 0, now_ns() + 1'000'000); }), some_errno);
}

TEST(futex_wake, leaves_errno_alone) {
  futex_word word{0};
  EXPECT_EQ(errno_after([&] { futex_wake(word, 1); }), some_errno);
}

TEST(futex_wait, leaves_errno_alone_when_it_slept) {
  futex_word word{0};
  int found = 0;
  std::atomic<bool> about_to_sleep = false;
  std::thread sleeper([&] {
    found = errno_after([&] {
      about_to_sleep = true;
      while (word == 0) futex_wait(word, 0);
    });
  });
  while (!about_to_sleep) std::this_thread::yield();
  word = 1;
  futex_wake(word, 1);
  sleeper.join();
  EXPECT_EQ(found, some_errno);
}

TEST(futex_wait_until, is_false_when_the_time_has_come_and_not_before) {
  futex_word word{0};
  const std::int64_t deadline = now_ns() + 3'000'000;
  while (futex_wait_until(word, 0, deadline)) {
  }
  EXPECT_GE(now_ns(), deadline);
}

TEST(futex_wait_until, is_true_when_the_word_has_changed) {
  futex_word word{1};
  EXPECT_TRUE(futex_wait_until(word, 0, now_ns() - 1));
}

TEST(futex_wake, of_a_word_that_is_not_mapped_any_more_does_nothing) {
  constexpr std::size_t bytes = 4096;
  void* page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* word = new (page) futex_word{0};
  ASSERT_EQ(::munmap(page, bytes), 0);
  EXPECT_EQ(errno_after([&] { futex_wake(*word, 1); }), some_errno);
}

TEST(futex_wake, wakes_as_many_as_it_is_told) {
  constexpr int sleepers = 6;
  futex_word word{0};
  std::atomic<int> awake = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < sleepers; ++i) {
    threads.emplace_back([&] {
      while (word == 0) futex_wait(word, 0);
      ++awake;
    });
  }
  word = 1;
  futex_wake(word, sleepers);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(awake, sleepers);
}

}  // namespace
