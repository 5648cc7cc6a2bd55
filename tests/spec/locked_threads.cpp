// lock_os_thread(): the goroutine and its thread serve only each other.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "support/await.h"

// ASan asks for it: else it would unmap, at the end of a thread, whatever signal stack that has then.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "use_sigaltstack=0"; }

namespace {

using namespace std::chrono_literals;

class locked_thread : public testing::TestWithParam<int> {
 protected:
  template <class F>
  void run(F f) {
    weft::run(f, {.procs = GetParam()});
  }
};

TEST_P(locked_thread, is_the_same_after_every_wait) {
  run([] {
    weft::wait_group wg;
    for (int i = 0; i < 8; ++i) {
      wg.go([] {
        weft::lock_os_thread();
        const pid_t mine = ::gettid();
        weft::chan<int> c;
        for (int k = 0; k < 50; ++k) {
          weft::yield();
          EXPECT_EQ(::gettid(), mine);
          weft::sleep_for(10us);
          EXPECT_EQ(::gettid(), mine);
          weft::go([c] { c.send(1); });
          c.recv();
          EXPECT_EQ(::gettid(), mine);
          weft::blocking([] { ::usleep(10); });
          EXPECT_EQ(::gettid(), mine);
        }
        weft::unlock_os_thread();
      });
    }
    wg.wait();
  });
}

TEST_P(locked_thread, serves_nobody_else) {
  run([] {
    std::atomic<pid_t> locked{0};
    std::atomic<bool> done{false};
    weft::wait_group wg, others;
    wg.go([&] {
      weft::lock_os_thread();
      locked = ::gettid();
      while (!done) weft::sleep_for(100us);
      weft::unlock_os_thread();
    });
    while (locked == 0) weft::yield();
    for (int i = 0; i < 200; ++i) {
      others.go([&] {
        for (int k = 0; k < 5; ++k) {
          EXPECT_NE(::gettid(), locked.load());
          weft::yield();
        }
      });
    }
    others.wait();
    done = true;
    wg.wait();
  });
}

TEST_P(locked_thread, nests) {
  run([] {
    weft::async([] {
      weft::lock_os_thread();
      weft::lock_os_thread();
      const pid_t mine = ::gettid();
      weft::unlock_os_thread();
      for (int i = 0; i < 20; ++i) {
        weft::sleep_for(10us);
        EXPECT_EQ(::gettid(), mine);
      }
      weft::unlock_os_thread();
      weft::unlock_os_thread();  // one too many does nothing
      weft::sleep_for(10us);
    }).get();
  });
}

// A thread that ends runs its thread_local destructors.
struct at_thread_end {
  std::atomic<int>* count = nullptr;
  ~at_thread_end() {
    if (count != nullptr) ++*count;
  }
};
thread_local at_thread_end thread_guard;

TEST_P(locked_thread, ends_with_a_goroutine_that_is_still_locked) {
  static std::atomic<int> ended;
  ended = 0;
  run([] {
    // Those of Ps that were idle until now may come to it.
    const std::size_t enough = weft::runtime::num_thread() + static_cast<std::size_t>(weft::runtime::max_procs()) + 4;
    for (int i = 0; i < 50; ++i) {
      weft::async([] {
        weft::lock_os_thread();
        thread_guard.count = &ended;
      }).get();
    }
    test::await([] { return ended == 50; });
    test::await([=] { return weft::runtime::num_thread() <= enough; });
  });
}

TEST_P(locked_thread, is_left_alive_by_a_goroutine_that_unlocked_it) {
  run([] {
    const auto before = weft::runtime::read_sched_stats().threads_created;
    for (int i = 0; i < 100; ++i) {
      weft::async([] {
        weft::lock_os_thread();
        weft::unlock_os_thread();
      }).get();
    }
    EXPECT_LT(weft::runtime::read_sched_stats().threads_created - before, 50u);  // else about one for each
  });
}

TEST_P(locked_thread, of_the_main_goroutine_is_the_one_that_called_run) {
  const pid_t caller = ::gettid();
  for (int i = 0; i < 3; ++i) {
    run([&] {
      weft::lock_os_thread();
      EXPECT_EQ(::gettid(), caller);
      weft::chan<int> c;
      for (int k = 0; k < 20; ++k) {
        weft::go([c] { c.send(1); });
        c.recv();
        EXPECT_EQ(::gettid(), caller);
        weft::sleep_for(10us);
        EXPECT_EQ(::gettid(), caller);
      }
      if (i == 1) weft::unlock_os_thread();  // or not: it ends with the run either way
      weft::yield();
    });
  }
}

TEST_P(locked_thread, of_the_main_goroutine_may_be_left_and_taken_again) {
  const pid_t caller = ::gettid();
  run([&] {
    for (int i = 0; i < 20; ++i) {
      weft::lock_os_thread();
      EXPECT_EQ(::gettid(), caller);
      weft::unlock_os_thread();
      EXPECT_NE(::gettid(), caller);
    }
  });
}

TEST_P(locked_thread, can_be_preempted_in_place) {
  run([] {
    std::atomic<bool> stop{false};
    weft::wait_group wg;
    wg.go([&] {
      weft::lock_os_thread();
      const pid_t mine = ::gettid();
      while (!stop.load(std::memory_order_relaxed)) {
      }
      EXPECT_EQ(::gettid(), mine);
      weft::yield();
      EXPECT_EQ(::gettid(), mine);
      weft::unlock_os_thread();
    });
    for (int i = 0; i < 10; ++i) weft::sleep_for(1ms);
    stop = true;
    wg.wait();
  });
}

// Crash reporters have signal stacks of their own.
TEST_P(locked_thread, that_ends_leaves_a_signal_stack_alone_that_is_not_of_weft) {
  constexpr std::size_t size = 1 << 20;
  void* const stack = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(stack, MAP_FAILED);
  run([=] {
    std::atomic<pid_t> thread = 0;
    weft::wait_group wg;
    wg.go([&] {
      weft::lock_os_thread();
      thread = ::gettid();
      stack_t own = {};
      own.ss_sp = stack;
      own.ss_size = size;
      EXPECT_EQ(::sigaltstack(&own, nullptr), 0);
    });
    wg.wait();
    test::await([&] { return ::access(("/proc/self/task/" + std::to_string(thread)).c_str(), F_OK) != 0; });
  });
  EXPECT_EQ(::msync(stack, size, MS_ASYNC), 0) << "not mapped any more";
  ::munmap(stack, size);
}

INSTANTIATE_TEST_SUITE_P(procs, locked_thread, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST(lock_os_thread, does_nothing_on_a_plain_thread) {
  weft::lock_os_thread();
  weft::unlock_os_thread();
}

}  // namespace
