// A goroutine that needs more than its stack ends the program with a report, whichever way the guard is made.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>
#include <thread>

#include "support/await.h"
#include "support/build.h"
#include "support/park.h"
#include "support/subprocess.h"

namespace {

constexpr std::size_t kib = 1024;

volatile bool deeper = true;  // for ever, but the compiler must not know

// Does not return: there is no end to it but that of the stack.
[[gnu::noinline]] int overflow(int depth) {
  volatile char frame[100];
  frame[0] = static_cast<char>(depth);
  const int below = deeper ? overflow(depth + 1) : 0;
  return below + frame[0];
}

void say_id_and_overflow() {
  std::printf("%llu\n", static_cast<unsigned long long>(weft::goroutine_id()));
  std::fflush(stdout);
  overflow(0);
}

const test::scenario in_the_main_goroutine("in_the_main_goroutine", [] { weft::run(say_id_and_overflow); });

const test::scenario in_a_new_goroutine("in_a_new_goroutine", [] {
  weft::run([] {
    weft::go(say_id_and_overflow);
    test::park_for_ever();
  });
});

const test::scenario in_a_named_goroutine("in_a_named_goroutine", [] {
  weft::run([] {
    weft::go({.name = std::string("the diver")}, say_id_and_overflow);
    test::park_for_ever();
  });
});

const test::scenario in_a_goroutine_of_64_kib("in_a_goroutine_of_64_kib", [] {
  weft::run([] {
    weft::go({.name = "small", .stack_size = 64 * kib}, say_id_and_overflow);
    test::park_for_ever();
  });
});

const test::scenario in_a_goroutine_of_a_run_with_one_mib("in_a_goroutine_of_a_run_with_one_mib", [] {
  weft::run(
      [] {
        weft::go({.name = "large"}, say_id_and_overflow);
        test::park_for_ever();
      },
      {.stack_size = 1024 * kib});
});

const test::scenario on_a_stack_that_others_used_before("on_a_stack_that_others_used_before", [] {
  weft::run(
      [] {
        for (int i = 0; i < 1000; ++i) weft::async([] { weft::yield(); }).get();
        weft::go({.name = "heir"}, [] {
          weft::yield();
          say_id_and_overflow();
        });
        test::park_for_ever();
      },
      {.procs = 4});
});

const test::scenario beside_many_parked_goroutines("beside_many_parked_goroutines", [] {
  weft::run(
      [] {
        static std::atomic<int> begun = 0;
        const auto gate = weft::async([] { test::park_for_ever(); });
        for (int i = 0; i < 10'000; ++i) {
          weft::go([&] {
            ++begun;
            gate.wait();
          });
        }
        test::await([] { return begun == 10'000; });
        weft::go({.name = "one of many"}, say_id_and_overflow);
        gate.wait();
      },
      {.procs = 2});
});

const test::scenario inside_a_call_into_libc("inside_a_call_into_libc", [] {
  weft::run([] {
    weft::go({.name = "caller", .stack_size = 64 * kib}, [] {
      std::printf("%llu\n", static_cast<unsigned long long>(weft::goroutine_id()));
      std::fflush(stdout);
      struct recursive {
        static int compare(const void*, const void*) {
          int numbers[3] = {3, 1, 2};
          std::qsort(numbers, 3, sizeof numbers[0], &compare);
          return 0;
        }
      };
      recursive::compare(nullptr, nullptr);
    });
    test::park_for_ever();
  });
});

// It touches a byte here and there of a frame that is larger than the stack and all that lies between it and the next one.
[[gnu::noinline]] int work_in_a_large_frame(int at) {
  volatile char room[1024 * kib];
  room[at] = 1;
  return room[at];
}

const test::scenario in_a_frame_larger_than_the_stack("in_a_frame_larger_than_the_stack", [] {
  weft::run([] {
    weft::go({.name = "wide"}, [] {
      std::printf("%llu\n", static_cast<unsigned long long>(weft::goroutine_id()));
      std::fflush(stdout);
      std::printf("%d\n", work_in_a_large_frame(1000));
    });
    test::park_for_ever();
  });
});

int lines_with_an_address(const std::string& text) {
  static const std::regex address("0x[0-9a-f]{4,}");
  int lines = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += std::regex_search(text.substr(begin, end - begin), address);
    begin = end + 1;
  }
  return lines;
}

class stack_overflow : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (test::under_sanitizer) GTEST_SKIP() << "the sanitizer reports overflows itself";
  }

  // `name` empty: a goroutine without a name.
  void expect_report(const test::scenario& scenario, const std::string& name, std::size_t stack_size) {
    test::environment with;
    if (*GetParam() != '\0') with.emplace_back("WEFTDEBUG", GetParam());
    const auto end = scenario.run(with);
    ASSERT_FALSE(end.timed_out) << end;
    EXPECT_TRUE(end.died()) << end;
    const std::string id = end.out.substr(0, end.out.find('\n'));
    ASSERT_FALSE(id.empty()) << end;

    const std::string who = "goroutine " + id + " [running]" + (name.empty() ? "" : " \"" + name + "\"");
    const std::regex headline(std::regex_replace(who, std::regex("[\\[\\]]"), "\\$&") + ": stack overflow");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(end.err, found, headline)) << "no report of " << who << "\n" << end;

    const std::string rest = found.suffix();
    const bool says_size = end.err.find(std::to_string(stack_size)) != std::string::npos ||
                           end.err.find(std::to_string(stack_size / kib) + " K") != std::string::npos;
    EXPECT_TRUE(says_size) << "no size of the stack (" << stack_size << ")\n" << end;
    EXPECT_GE(lines_with_an_address(rest), 3) << "no backtrace\n" << end;
    EXPECT_LT(end.err.size(), 100'000u) << "a backtrace that long helps nobody";
  }
};

INSTANTIATE_TEST_SUITE_P(guards, stack_overflow, testing::Values("", "guard=mprotect"), [](const auto& guard) {
  return std::string(*guard.param == '\0' ? "default_guard" : "mprotect_guard");
});

TEST_P(stack_overflow, of_the_main_goroutine_is_reported) { expect_report(in_the_main_goroutine, "", 256 * kib); }

TEST_P(stack_overflow, of_a_goroutine_is_reported) { expect_report(in_a_new_goroutine, "", 256 * kib); }

TEST_P(stack_overflow, is_reported_with_the_name_of_the_goroutine) {
  expect_report(in_a_named_goroutine, "the diver", 256 * kib);
}

TEST_P(stack_overflow, is_reported_with_the_size_that_go_was_told) {
  expect_report(in_a_goroutine_of_64_kib, "small", 64 * kib);
}

TEST_P(stack_overflow, is_reported_with_the_size_that_run_was_told) {
  expect_report(in_a_goroutine_of_a_run_with_one_mib, "large", 1024 * kib);
}

TEST_P(stack_overflow, on_a_used_stack_is_reported) {
  expect_report(on_a_stack_that_others_used_before, "heir", 256 * kib);
}

TEST_P(stack_overflow, beside_many_parked_goroutines_is_reported) {
  expect_report(beside_many_parked_goroutines, "one of many", 256 * kib);
}

TEST_P(stack_overflow, inside_libc_is_reported) { expect_report(inside_a_call_into_libc, "caller", 64 * kib); }

TEST_P(stack_overflow, in_one_large_frame_is_reported) { expect_report(in_a_frame_larger_than_the_stack, "wide", 256 * kib); }

class no_stack_overflow : public testing::Test {
 protected:
  void SetUp() override {
    if (test::under_sanitizer) GTEST_SKIP() << "the sanitizer handles SIGSEGV itself";
  }
};

void write_to_nowhere() {
  volatile std::size_t nowhere = 16;  // so that the compiler does not know
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}

const test::scenario bad_pointer_in_a_goroutine("bad_pointer_in_a_goroutine",
                                                [] { weft::run([] { weft::async(write_to_nowhere).get(); }); });

TEST_F(no_stack_overflow, is_reported_for_a_bad_pointer_which_ends_the_process_by_sigsegv) {
  const auto end = bad_pointer_in_a_goroutine.run();
  EXPECT_EQ(end.signal, SIGSEGV) << end;
  EXPECT_EQ(end.err.find("stack overflow"), std::string::npos) << end;
}

const test::scenario bad_pointer_with_an_own_handler("bad_pointer_with_an_own_handler", [] {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    const char text[] = "own handler\n";
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text, sizeof text - 1);
    ::_exit(info->si_addr == reinterpret_cast<void*>(16) ? 17 : 18);
  };
  ::sigaction(SIGSEGV, &action, nullptr);
  weft::run([] { weft::async(write_to_nowhere).get(); });
});

TEST_F(no_stack_overflow, is_reported_for_a_fault_that_the_programs_own_handler_knows) {
  const auto end = bad_pointer_with_an_own_handler.run();
  EXPECT_EQ(end.exit_code, 17) << end;
  EXPECT_EQ(end.out, "own handler\n") << end;
  EXPECT_EQ(end.err.find("stack overflow"), std::string::npos) << end;
}

const test::scenario overflow_of_a_plain_thread("overflow_of_a_plain_thread", [] {
  weft::start();
  weft::async([] {}).get();
  std::thread([] { overflow(0); }).join();
});

TEST_F(no_stack_overflow, of_a_goroutine_is_reported_for_that_of_a_plain_thread) {
  const auto end = overflow_of_a_plain_thread.run();
  EXPECT_EQ(end.signal, SIGSEGV) << end;
  EXPECT_EQ(end.err.find("goroutine"), std::string::npos) << end;
}

long max_map_count() {
  long count = 0;
  std::FILE* const file = std::fopen("/proc/sys/vm/max_map_count", "r");
  if (file != nullptr) {
    if (std::fscanf(file, "%ld", &count) != 1) count = 0;
    std::fclose(file);
  }
  return count;
}

const test::scenario more_guards_than_the_system_allows("more_guards_than_the_system_allows", [] {
  weft::run(
      [] {
        const long count = max_map_count() + 1000;
        static std::atomic<long> begun = 0;
        static std::atomic<bool> release = false;
        const auto gate = weft::async([] { test::await([] { return release.load(); }); });
        for (long i = 0; i < count; ++i) {
          weft::go([&] {
            ++begun;
            gate.wait();
          });
        }
        test::await([&] { return begun == count; });
        release = true;
        test::await([] { return weft::runtime::num_goroutine() == 1; });
      },
      {.procs = 2});
});

TEST(guards_made_by_mprotect, that_exceed_the_systems_limit_are_said_so_clearly) {
  if (test::under_sanitizer) GTEST_SKIP() << "too many goroutines for a sanitizer";
  if (max_map_count() == 0 || max_map_count() > 200'000) GTEST_SKIP() << "the limit is out of reach";
  const auto end = more_guards_than_the_system_allows.run({{"WEFTDEBUG", "guard=mprotect"}});
  EXPECT_FALSE(end.timed_out) << end;
  EXPECT_NE(end.err.find("max_map_count"), std::string::npos) << end;
  EXPECT_NE(end.signal, SIGSEGV) << end;
}

const test::scenario ordinary_work("ordinary_work", [] {
  weft::run(
      [] {
        static std::atomic<int> ended = 0;
        for (int i = 0; i < 5000; ++i) {
          weft::go([] {
            for (int k = 0; k < 5; ++k) weft::yield();
            ++ended;
          });
        }
        test::await([] { return ended == 5000; });
        std::puts("done");
      },
      {.procs = 2});
});

TEST(guards_made_by_mprotect, do_not_disturb_ordinary_work) {
  const auto end = ordinary_work.run({{"WEFTDEBUG", "guard=mprotect"}});
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.out, "done\n") << end;
  EXPECT_EQ(end.err, "") << end;
}

}  // namespace
