// A goroutine that makes no call into weft does not keep the others from running, whatever it does instead.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include "support/await.h"
#include "support/build.h"
#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

// One that computes until it is told to stop, and never calls weft.
void spin_until(const std::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_relaxed)) {
  }
}

class on_procs : public testing::TestWithParam<int> {
 protected:
  template <class F>
  void run(F f) {
    weft::run(f, {.procs = GetParam()});
  }
};

TEST_P(on_procs, a_spinning_goroutine_does_not_stop_a_sleeper) {
  run([] {
    std::atomic<bool> stop{false};
    weft::wait_group wg;
    for (int i = 0; i < weft::runtime::max_procs(); ++i) wg.go([&] { spin_until(stop); });
    for (int i = 0; i < 20; ++i) weft::sleep_for(1ms);
    stop = true;
    wg.wait();
  });
}

TEST_P(on_procs, spinners_let_the_one_run_that_they_wait_for) {
  const int spinners = test::under_sanitizer ? 20 : 60;
  run([&] {
    std::atomic<bool> flag{false};
    weft::wait_group wg;
    for (int i = 0; i < spinners; ++i) wg.go([&] { spin_until(flag); });
    wg.go([&] { flag = true; });
    wg.go([&] { spin_until(flag); });  // takes the setter's place in runnext: it is queued behind all the others
    wg.wait();
  });
}

TEST_P(on_procs, a_goroutine_stopped_in_place_keeps_its_standard_mutex_and_gets_on) {
  run([] {
    std::mutex m;
    long counter = 0;
    weft::wait_group wg;
    for (int i = 0; i < 6; ++i) {
      wg.go([&] {
        for (int k = 0; k < 5; ++k) {
          std::lock_guard guard(m);
          const auto end = std::chrono::steady_clock::now() + 4ms;
          while (std::chrono::steady_clock::now() < end) ++counter;
        }
      });
    }
    wg.wait();
    EXPECT_GT(counter, 0);
  });
}

TEST_P(on_procs, goroutines_asleep_in_the_kernel_give_their_p_away) {
  run([] {
    std::atomic<int> done{0};
    weft::wait_group wg;
    for (int i = 0; i < 20; ++i) {
      wg.go([&] {
        ::usleep(100'000);
        ++done;
      });
    }
    wg.wait();
    EXPECT_EQ(done, 20);
  });
}

TEST_P(on_procs, a_read_from_a_pipe_waits_for_a_goroutine_that_writes_to_it) {
  run([] {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    weft::wait_group wg;
    for (int i = 0; i < 4; ++i) {
      wg.go([&] {
        char c = 0;
        EXPECT_EQ(::read(ends[0], &c, 1), 1);
        EXPECT_EQ(c, 'x');
      });
    }
    wg.go([&] { EXPECT_EQ(::write(ends[1], "xxxx", 4), 4); });
    wg.go([] {});
    wg.wait();
    ::close(ends[0]);
    ::close(ends[1]);
  });
}

TEST_P(on_procs, a_pthread_mutex_is_waited_for_while_its_holder_sleeps_in_weft) {
  run([] {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    weft::chan<int> locked, go_on;
    weft::wait_group wg;
    wg.go([&] {
      weft::lock_os_thread();  // a pthread mutex belongs to its thread
      ::pthread_mutex_lock(&m);
      locked.send(1);
      go_on.recv();
      ::pthread_mutex_unlock(&m);
      weft::unlock_os_thread();
    });
    locked.recv();
    std::atomic<bool> got{false};
    wg.go([&] {
      ::pthread_mutex_lock(&m);
      got = true;
      ::pthread_mutex_unlock(&m);
    });
    for (int i = 0; i < 10; ++i) weft::sleep_for(1ms);
    EXPECT_FALSE(got);
    go_on.send(1);
    wg.wait();
    EXPECT_TRUE(got);
  });
}

TEST_P(on_procs, a_standard_condition_variable_is_waited_for_without_stopping_who_notifies) {
  run([] {
    std::mutex m;
    std::condition_variable cv;
    bool ready = false;
    weft::wait_group wg;
    for (int i = 0; i < 3; ++i) {
      wg.go([&] {
        std::unique_lock lock(m);
        cv.wait(lock, [&] { return ready; });
      });
    }
    wg.go([&] {
      std::lock_guard guard(m);
      ready = true;
      cv.notify_all();
    });
    wg.go([] {});
    wg.wait();
  });
}

TEST_P(on_procs, cpu_bound_goroutines_all_finish_and_threads_stay_few) {
  const int crowd = 200;
  run([&] {
    std::size_t most = 0;
    weft::wait_group wg;
    for (int i = 0; i < crowd; ++i) {
      wg.go([&] {
        const auto end = std::chrono::steady_clock::now() + 12ms;
        while (std::chrono::steady_clock::now() < end) {
        }
      });
    }
    std::atomic<bool> over{false};
    std::thread observer([&] {
      while (!over) {
        most = std::max(most, weft::runtime::num_thread());
        ::usleep(1000);
      }
    });
    wg.wait();
    over = true;
    observer.join();
    EXPECT_LT(most, 120u);
  });
}

INSTANTIATE_TEST_SUITE_P(preemption, on_procs, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST(preemption, a_goroutine_stopped_in_place_is_let_go_when_run_ends) {
  // It holds a lock that is needed afterwards; and it stops for good at its next call into weft.
  static std::mutex m;
  static std::atomic<bool> locked{false}, ended{false}, unlocked{false}, after_yield{false};
  weft::run(
      [] {
        weft::go([] {
          m.lock();
          locked = true;
          spin_until(ended);
          m.unlock();
          unlocked = true;
          weft::yield();
          after_yield = true;
        });
        while (!locked) weft::sleep_for(1ms);
      },
      {.procs = 1});
  ended = true;
  m.lock();
  m.unlock();
  while (!unlocked) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(after_yield);
  weft::run([] { while (!after_yield) weft::sleep_for(1ms); }, {.procs = 1});
}

TEST(preemption, it_is_counted) {
  weft::run(
      [] {
        const auto before = weft::runtime::read_sched_stats();
        std::atomic<bool> stop{false};
        weft::wait_group wg;
        wg.go([&] { spin_until(stop); });
        // Usually the first time that the sleeper wants its P back.
        for (test::hang_limit limit(__FILE__, __LINE__);; limit.check()) {
          weft::sleep_for(1ms);
          const auto now = weft::runtime::read_sched_stats();
          if (now.preempted_running > before.preempted_running && now.preempt_signals > before.preempt_signals) break;
        }
        stop = true;
        wg.go([] { ::usleep(50'000); });
        weft::sleep_for(1ms);
        wg.wait();
        EXPECT_EQ(weft::runtime::read_sched_stats().stopped_in_place, 0u);
      },
      {.procs = 1});
}

// The signal belongs to the program as well.
volatile std::sig_atomic_t urgent = 0;

const test::scenario chains("chains", [] {
  struct sigaction action = {};
  action.sa_handler = [](int) { urgent = urgent + 1; };
  ::sigaction(SIGURG, &action, nullptr);
  weft::run(
      [] {
        std::atomic<bool> stop{false};
        weft::wait_group wg;
        wg.go([&] { spin_until(stop); });
        for (int i = 0; i < 5; ++i) weft::sleep_for(1ms);
        stop = true;
        wg.wait();
        EXPECT_EQ(urgent, 0);
        ::raise(SIGURG);
      },
      {.procs = 1});
  if (urgent != 1) std::abort();
});

TEST(preemption, a_handler_that_was_there_before_gets_the_signals_that_are_not_wefts) {
  const test::outcome end = chains.run();
  EXPECT_FALSE(end.died()) << end;
}

// Whether a sleeper wakes up while another goroutine spins on its P, for that long at most.
bool wakes_within(std::chrono::milliseconds longest) {
  std::atomic<bool> slept{false};
  bool before = false, after = false;
  weft::wait_group wg;
  wg.go([&] {
    before = slept;
    const auto end = std::chrono::steady_clock::now() + longest;
    while (!slept && std::chrono::steady_clock::now() < end) {
    }
    after = slept;
  });
  weft::sleep_for(5ms);
  slept = true;
  wg.wait();
  // It may be that the machine had no time for the spinner until the sleeper's 5 ms were over.
  return before ? wakes_within(longest) : after;
}

template <int Milliseconds>
void say_whether_it_wakes() {
  weft::run([] { std::printf("slept meanwhile: %d\n", wakes_within(std::chrono::milliseconds(Milliseconds))); }, {.procs = 1});
}

// With preemption off, the spinner goes on and the sleeper waits for it.
const test::scenario off("off", say_whether_it_wakes<100>);
const test::scenario on("on", say_whether_it_wakes<50'000>);

TEST(preemption, asyncpreemptoff_turns_it_off) {
  EXPECT_NE(off.run({{"WEFTDEBUG", "asyncpreemptoff=1"}}).out.find("slept meanwhile: 0"), std::string::npos);
  EXPECT_NE(on.run().out.find("slept meanwhile: 1"), std::string::npos);
}

// The slice is so long that the test would not end in time. A P gives way for a socket that is ready, as for a timer.
const test::scenario reads_beside_spinners("reads_beside_spinners", [] {
  weft::run(
      [] {
        weft::net::listener listener = weft::net::listen_tcp("127.0.0.1:0");
        weft::net::conn out = weft::net::dial_tcp(listener.local_address().to_string());
        weft::net::conn in = listener.accept();
        std::atomic<bool> over = false;
        weft::wait_group all;
        all.go([&] {
          std::array<std::byte, 1> buffer;
          for (int i = 0; i < 20; ++i) in.read(buffer);
          over = true;
        });
        const int fd = out.native_handle();
        std::thread writer([&] {
          for (int i = 0; i < 20; ++i) {
            std::this_thread::sleep_for(15ms);
            EXPECT_EQ(::write(fd, "x", 1), 1);
          }
        });
        weft::yield();
        for (int i = 0; i < weft::runtime::max_procs(); ++i) {
          all.go([&] {
            while (!over.load(std::memory_order_relaxed)) {
            }
          });
        }
        all.wait();
        writer.join();
        std::printf("read\n");
      },
      {.procs = 2});
});
TEST(preemption, a_ready_socket_does_not_wait_for_the_end_of_a_slice) {
  const auto end = reads_beside_spinners.run({{"WEFTDEBUG", "slice=1000000"}});
  EXPECT_EQ(end.out, "read\n") << end;
}

// The first one is late by 900 ms; the others are as long as half of dueslice has passed since somebody was stopped.
const test::scenario naps_beside_a_spinner("naps_beside_a_spinner", [] {
  weft::run(
      [] {
        std::atomic<bool> stop{false};
        weft::wait_group wg;
        wg.go([&] { spin_until(stop); });
        for (int nap = 0; nap < 3; ++nap) {
          const auto due = std::chrono::steady_clock::now() + 1100ms;
          weft::sleep_until(due);
          const auto late = std::chrono::steady_clock::now() - due;
          if (nap > 0) std::printf(late < 600ms ? "in time\n" : "late\n");
        }
        stop = true;
        wg.wait();
      },
      {.procs = 1});
});
TEST(preemption, a_timer_waits_for_dueslice_only_if_nobody_had_to_be_stopped_lately) {
  const auto end = naps_beside_a_spinner.run({{"WEFTDEBUG", "slice=1000000,dueslice=2000"}});
  EXPECT_EQ(end.out, "in time\nin time\n") << end;
}

}  // namespace
