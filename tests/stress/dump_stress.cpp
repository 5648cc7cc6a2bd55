// Looking at everybody's stack, again and again, from goroutines and from plain threads, while goroutines compute,
// allocate, sleep in the kernel, are in blocking calls, talk and fork. Whoever is looked at must not notice: what they
// compute is checked, nobody's call fails, and everybody gets on. Only the raw words are gathered, without names, so
// there are thousands of looks.
//
//   WEFT_STRESS_SECONDS=N   for each number of Ps (3 if not set)
//   WEFT_SOAK=1             120 seconds
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "arch/context.h"
#include "sched/census.h"
#include "support/anywhere.h"
#include "support/build.h"
#include "support/stress.h"

namespace {

using namespace std::chrono_literals;
using weft::gmp::status;
using weft::sched::census;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// Integers and floating point: whatever register a signal could spoil.
void compute(std::uint64_t seed) {
  const auto once = [](std::uint64_t x) {
    double d = 1.0;
    for (int i = 0; i < 2000; ++i) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      d = d * 1.0000001 + static_cast<double>(x >> 40) * 1e-9;
    }
    return std::pair(x, d);
  };
  require(once(seed) == once(seed), "a computation");
}

void allocate(std::uint64_t seed) {
  std::map<std::uint64_t, std::string> strings;
  for (std::uint64_t i = 0; i < 50; ++i) strings[seed * i % 97] = std::string(1 + seed * i % 300, 'x');
  for (const auto& [k, s] : strings) require(s.find_first_not_of('x') == s.npos, "a string");
}

int call_depth(std::uint64_t n) {
  volatile char room[64] = {};
  return n == 0 ? room[0] : call_depth(n - 1) + room[n % 64];
}

void sleep_in_kernel(std::uint64_t seed) {
  pollfd nothing{-1, 0, 0};
  const int rc = ::poll(&nothing, 1, static_cast<int>(seed % 3));
  require(rc == 0 || errno == EINTR, "a poll");  // sysmon may have meant to stop it just when it fell asleep
}

void fork_and_wait() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(3);
  int result = 0;
  while (::waitpid(child, &result, 0) < 0) require(errno == EINTR, "waitpid");
  require(WIFEXITED(result) && WEXITSTATUS(result) == 3, "a child");
}

struct seen {
  std::atomic<std::uint64_t> looks{0}, running{0}, in_calls{0}, without_stack{0}, cut_short{0};

  // The walk has come to the first frame of all.
  static bool is_whole(std::span<const std::uintptr_t> frames) {
    const auto start = reinterpret_cast<std::uintptr_t>(&weft::arch::weft_goroutine_start);
    return frames.size() == census::max_frames || (frames.back() >= start && frames.back() < start + 64);
  }

  void add(const census& c) {
    ++looks;
    for (const census::member& m : c.members()) {
      if (m.state == status::running) ++running;
      if (m.state == status::syscall) ++in_calls;
      if (m.frames == 0) {
        ++without_stack;
      } else if (!is_whole(c.frames(m))) {
        ++cut_short;
      }
      for (const std::uintptr_t pc : c.frames(m)) require(pc != 0, "a frame");
    }
  }
};

class while_all_move : public testing::TestWithParam<int> {};

TEST_P(while_all_move, looks_at_all_stacks_disturb_nobody) {
  std::atomic<bool> over = false;
  seen s;
  test::watchdog dog(
      [&] { std::fprintf(stderr, "nothing moves; looks: %llu\n", static_cast<unsigned long long>(s.looks.load())); });
  weft::run(
      [&] {
        test::crew crew;
        const auto keep = [&](auto what) {
          crew.goroutine([&over, what] {
            for (std::uint64_t i = 1; !over; ++i) {
              what(i);
              ++test::progress;
            }
          });
        };
        for (int i = 0; i < 2; ++i) {
          keep([](std::uint64_t n) { compute(n); });
          keep([](std::uint64_t n) { allocate(n); });
          keep([](std::uint64_t n) { call_depth(n % 200); });
          keep([](std::uint64_t n) { sleep_in_kernel(n); });
          keep([](std::uint64_t n) { weft::blocking([n] { n % 2 == 0 ? sleep_in_kernel(n) : compute(n); }); });
          keep([c = weft::chan<int>()](std::uint64_t n) {
            weft::go([c, n] { c.send(static_cast<int>(n)); });
            require(c.recv() == static_cast<int>(n), "a value");
          });
        }
        keep([](std::uint64_t) { weft::sleep_for(100us); });
        keep([](std::uint64_t n) {
          weft::lock_os_thread();
          compute(n);
          weft::unlock_os_thread();
        });
        if (!test::under_sanitizer) {
          keep([](std::uint64_t) {
            fork_and_wait();
            weft::sleep_for(5ms);
          });
        }
        for (int i = 0; i < 4; ++i) {
          crew.either(i, [&] {
            while (!over) {
              census c;
              c.take_from_anywhere();
              s.add(c);
              ++test::progress;
            }
          });
        }
        const auto end = std::chrono::steady_clock::now() + test::stress_duration();
        while (std::chrono::steady_clock::now() < end) weft::sleep_for(10ms);
        over = true;
      },
      {.procs = GetParam()});
  std::printf("%llu looks: %llu running, %llu in calls; %llu without a stack, %llu not to the end\n",
              static_cast<unsigned long long>(s.looks), static_cast<unsigned long long>(s.running),
              static_cast<unsigned long long>(s.in_calls), static_cast<unsigned long long>(s.without_stack),
              static_cast<unsigned long long>(s.cut_short));
  EXPECT_GT(s.running, s.looks / 2);
}

INSTANTIATE_TEST_SUITE_P(dumps, while_all_move, testing::Values(1, 2, 8));

}  // namespace
