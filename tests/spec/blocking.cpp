// Calls that block the thread do not keep the other goroutines from running.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

#include "support/await.h"

namespace {

// A pipe whose read end blocks until somebody writes.
class gate {
 public:
  gate() {
    if (::pipe(ends_) != 0) throw std::runtime_error("pipe");
  }
  ~gate() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void wait() const {
    char c;
    while (::read(ends_[0], &c, 1) < 0 && errno == EINTR) {
    }
  }
  void open(int times = 1) const {
    for (int i = 0; i < times; ++i) EXPECT_EQ(::write(ends_[1], "x", 1), 1);
  }

 private:
  int ends_[2];
};

TEST(blocking, returns_what_the_function_returns) {
  weft::run([] {
    EXPECT_EQ(weft::blocking([] { return 42; }), 42);
    int x = 1;
    int& same = weft::blocking([&]() -> int& { return x; });
    EXPECT_EQ(&same, &x);
    EXPECT_EQ(*weft::blocking([] { return std::make_unique<int>(7); }), 7);
    weft::blocking([&] { x = 2; });
    EXPECT_EQ(x, 2);
  });
}

TEST(blocking, lets_exceptions_through_and_gives_the_p_back) {
  weft::run([] {
    EXPECT_THROW(weft::blocking([] { throw std::runtime_error("x"); }), std::runtime_error);
    weft::yield();
    EXPECT_EQ(weft::async([] { return 1; }).get(), 1);
  });
}

TEST(blocking, keeps_errno) {
  weft::run([] {
    weft::blocking([] { errno = 0; ::close(-1); });
    EXPECT_EQ(errno, EBADF);
  });
}

TEST(blocking, does_nothing_on_a_plain_thread) {
  EXPECT_EQ(weft::blocking([] { return 5; }), 5);
  const weft::blocking_region region;
  EXPECT_FALSE(weft::in_goroutine());
}

TEST(a_blocked_thread, does_not_stop_the_others) {
  for (const int procs : {1, 2, 4}) {
    weft::run(
        [&] {
          const gate g;
          std::atomic<int> blocked = 0;
          weft::wait_group all;
          for (int i = 0; i < 2 * procs; ++i) {
            all.go([&] {
              ++blocked;
              weft::blocking([&] { g.wait(); });
            });
          }
          test::await([&] { return blocked == 2 * procs; });
          EXPECT_EQ(weft::async([] { return 3; }).get(), 3);
          g.open(2 * procs);
          all.wait();
        },
        {.procs = procs});
  }
}

TEST(a_call_into_weft, is_allowed_while_blocking) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          const weft::blocking_region outer;
          EXPECT_TRUE(weft::in_goroutine());
          EXPECT_EQ(weft::async([] { return 8; }).get(), 8);
          weft::blocking([] { ::usleep(2000); });
          weft::yield();
          ::usleep(2000);
        },
        {.procs = procs});
  }
}

TEST(many_blocking_calls, all_come_back) {
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [] {
          weft::wait_group all;
          std::atomic<int> calls = 0;
          for (int i = 0; i < 50; ++i) {
            all.go([&, i] {
              for (int k = 0; k < 20; ++k) {
                weft::blocking([&] { ::usleep(i % 5 == 0 ? 0 : 300); });
                ++calls;
                if (k % 4 == 0) weft::yield();
              }
            });
          }
          all.wait();
          EXPECT_EQ(calls, 1000);
        },
        {.procs = procs});
  }
}

// Those that come back take the Ps that are on their way to others; but not for ever.
TEST(many_blocking_calls, leave_time_for_those_that_wait_in_a_queue) {
  for (const int procs : {1, 2, 4}) {
    SCOPED_TRACE(procs);
    weft::run(
        [] {
          std::atomic<bool> over{false};
          std::atomic<int> calls{0};
          weft::wait_group all;
          for (int i = 0; i < 50; ++i) {
            all.go([&] {
              while (!over) {
                weft::blocking([] { ::usleep(50); });
                ++calls;
              }
            });
          }
          weft::wait_group queued;
          for (int i = 0; i < 10; ++i) {
            queued.go([] {
              for (int k = 0; k < 200; ++k) weft::yield();
            });
          }
          queued.wait();  // for ever, if nobody but those had a P
          test::await([&] { return calls > 1000; });
          over = true;
          all.wait();
        },
        {.procs = procs});
  }
}

TEST(a_goroutine_that_blocks, is_frozen_with_the_others_and_goes_on_in_the_next_run) {
  const gate g;
  std::atomic<bool> came_back = false;
  std::atomic<bool> blocked = false;
  weft::run([&] {
    weft::go([&] {
      weft::blocking([&] {
        blocked = true;
        g.wait();
      });
      came_back = true;
    });
    test::await([&] { return blocked.load(); });
  });
  g.open();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(came_back) << "no goroutine is scheduled between two runs";
  weft::run([&] { test::await([&] { return came_back.load(); }); });
}

}  // namespace
