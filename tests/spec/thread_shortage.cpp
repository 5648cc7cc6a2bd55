// The system gives no more threads for a while: the program goes on with those that it has.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "support/await.h"

namespace {
std::atomic<bool> none_left = false;
std::atomic<int> refused = 0;
}  // namespace

// This takes the place of libc's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument) noexcept {
  using create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<create>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (!none_left) return real(thread, attributes, function, argument);
  ++refused;
  return EAGAIN;
}

namespace {

// The first test: the runtime has no threads yet.
TEST(without_more_threads, the_first_start_tells_its_caller_and_may_be_tried_again) {
  none_left = true;
  EXPECT_THROW(weft::run([] {}), std::system_error);
  none_left = false;
  EXPECT_EQ(weft::run([] { return 7; }), 7);
}

TEST(without_more_threads, blocking_calls_take_turns_and_all_are_made) {
  weft::run(
      [] {
        none_left = true;
        std::atomic<int> made = 0;
        weft::wait_group all;
        for (int i = 0; i < 24; ++i) {
          all.go([&] {
            weft::blocking([] { ::usleep(20'000); });
            ++made;
          });
        }
        all.wait();
        EXPECT_EQ(made, 24);
        EXPECT_GT(refused, 0);
        none_left = false;
      },
      {.procs = 2});
}

TEST(without_more_threads, those_that_can_be_made_again_are_made) {
  weft::run(
      [] {
        const auto before = weft::runtime::num_thread();
        weft::wait_group all;
        std::atomic<bool> over = false;
        for (int i = 0; i < 24; ++i) {
          all.go([&] {
            weft::blocking([&] { test::spin_until([&] { return ::usleep(1000), over.load(); }); });
          });
        }
        test::await([&] { return weft::runtime::num_thread() > before + 8; });
        over = true;
        all.wait();
      },
      {.procs = 2});
}

}  // namespace
