// WEFTDEBUG: what is said about settings that make no sense, and the lines of schedtrace.
#include <gtest/gtest.h>
#include <unistd.h>
#include <weft/weft.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <regex>
#include <string>

#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

int count(const std::string& text, const std::string& pattern) {
  const std::regex r(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), r), std::sregex_iterator()));
}

const test::scenario short_work("short_work", [] { weft::run([] { weft::yield(); }); });

// How long the scenarios below are at work.
const char* const length_variable = "SCHEDTRACE_TEST_MS";
std::chrono::milliseconds length() { return std::chrono::milliseconds(std::atoi(std::getenv(length_variable))); }

// Runs it until what it writes satisfies `enough`, the next time for longer: a busy machine may leave sysmon no time to write.
template <class Enough>
test::outcome trace(const test::scenario& s, const char* debug, Enough enough) {
  test::outcome end;
  for (const char* ms : {"200", "2000", "20000"}) {
    end = s.run({{"WEFTDEBUG", debug}, {length_variable, ms}});
    if (end.died() || enough(end.err)) break;
  }
  return end;
}

const test::scenario a_while("a_while", [] {
  weft::run(
      [] {
        weft::chan<int> never;
        weft::go([=] { never.recv(); });
        weft::go([] { weft::sleep_for(1h); });
        weft::sleep_for(length());
      },
      {.procs = 3});
});

TEST(weftdebug, that_is_understood_says_nothing) {
  for (const char* good : {"", ",", "schedtrace=0", "scheddetail=0,leaks=0"}) {
    const auto end = short_work.run({{"WEFTDEBUG", good}});
    EXPECT_EQ(end.exit_code, 0);
    EXPECT_EQ(end.err, "") << good;
  }
}

TEST(weftdebug, with_settings_that_do_not_exist_or_make_no_sense_warns_once_for_each_and_goes_on) {
  const auto end = short_work.run({{"WEFTDEBUG", "nonsense=1,schedtrace=soon,scheddetail,leaks=2,schedtrace=-5,=,schedtrace=9999999999999999999"}});
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(count(end.err, "weft: WEFTDEBUG: "), 7) << end;
  EXPECT_EQ(count(end.err, "\n"), 7) << end;
  EXPECT_NE(end.err.find("\"nonsense=1\""), std::string::npos) << end;
  EXPECT_NE(end.err.find("\"schedtrace=soon\" is ignored: the value of schedtrace is milliseconds"), std::string::npos) << end;
}

TEST(weftdebug, warns_about_each_in_one_whole_line_whatever_it_is) {
  const std::string long_name(5000, 'a');
  const auto end = short_work.run({{"WEFTDEBUG", long_name + ",new\nline\x1b[31m,with space=1, leaks=1,leaks = 1"}});
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(count(end.err, "weft: WEFTDEBUG: \".*\" is not a setting of this version; ignored\n"), 5) << end;
  EXPECT_EQ(count(end.err, "\n"), 5) << end;
  EXPECT_EQ(end.err.find('\x1b'), std::string::npos) << end;
}

// SIGKILL would end the program at the first slice that is over.
TEST(weftdebug, preempts_with_no_signal_that_is_not_free) {
  for (const char* number : {"9", "3", "32", "-1"}) {
    const auto end = short_work.run({{"WEFTDEBUG", std::string("preemptsignal=") + number}});
    EXPECT_EQ(end.exit_code, 0) << end;
    EXPECT_EQ(count(end.err, "is ignored: the value of preemptsignal is the number of a signal that can be caught"), 1) << number << end;
  }
  EXPECT_EQ(short_work.run({{"WEFTDEBUG", "preemptsignal=10"}}).err, "");
}

TEST(schedtrace, writes_a_line_again_and_again) {
  const std::string line =
      R"(SCHED [0-9]+ms: gomaxprocs=3 idleprocs=[0-9]+ threads=[0-9]+ spinningthreads=[0-9]+ needspinning=[01] idlethreads=[0-9]+ runqueue=[0-9]+ \[ [0-9]+ [0-9]+ [0-9]+ \]\n)";
  const auto end = trace(a_while, "schedtrace=10", [&](const std::string& text) { return count(text, line) >= 3; });
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_GE(count(end.err, line), 3) << end;
  EXPECT_EQ(count(end.err, line), count(end.err, "\n")) << end;
}

TEST(schedtrace, with_detail_has_a_row_for_each_p_m_and_g) {
  const std::string head = R"(SCHED [0-9]+ms: gomaxprocs=3 .* stopwait=[0-9]+ sysmonwait=0\n)";
  const std::string receives = R"(  G[0-9]+: status=4\(chan receive\) m=nil lockedm=nil\n)", sleeps = R"(  G[0-9]+: status=4\(sleep\))";
  const auto end = trace(a_while, "schedtrace=30,scheddetail=1", [&](const std::string& text) {
    return count(text, head) >= 3 && count(text, receives) >= 1 && count(text, sleeps) >= 2;
  });
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_GE(count(end.err, head), 2) << end;
  for (const char* p : {"P0", "P1", "P2"}) {
    EXPECT_GE(count(end.err, std::string("  ") + p + R"(: status=[0-9] schedtick=[0-9]+ syscalltick=[0-9]+ m=([0-9]+|nil) runqsize=[0-9]+ )"), 2)
        << end;
  }
  EXPECT_GE(count(end.err, R"(  M[0-9]+: p=([0-9]+|nil) curg=([0-9]+|nil) locks=[0-9]+ spinning=(true|false) )"), 2) << end;
  EXPECT_GE(count(end.err, R"(  M[0-9]+: .* blocked=(true|false) lockedg=nil\n)"), 2) << end;
  EXPECT_GE(count(end.err, receives), 1) << end;
  EXPECT_GE(count(end.err, sleeps), 2) << end;
}

const test::scenario locked_and_blocked("locked_and_blocked", [] {
  weft::run(
      [] {
        weft::go([] {
          weft::lock_os_thread();
          weft::chan<int>().recv();
        });
        weft::go([] { weft::blocking([] { ::sleep(100); }); });
        weft::sleep_for(length());
      },
      {.procs = 2});
});

TEST(schedtrace, with_detail_says_who_is_locked_to_which_thread_and_who_is_in_a_call) {
  const std::string expected[] = {
      R"(  G[0-9]+: status=4\(chan receive\) m=nil lockedm=[0-9]+\n)",
      R"(  M[0-9]+: p=nil curg=nil .* blocked=true lockedg=[0-9]+\n)",
      R"( nmidlelocked=1 )",
      R"(  G[0-9]+: status=3\(syscall\) m=[0-9]+ lockedm=nil\n)",
  };
  const auto end = trace(locked_and_blocked, "schedtrace=20,scheddetail=1", [&](const std::string& text) {
    return std::all_of(std::begin(expected), std::end(expected), [&](const std::string& row) { return count(text, row) >= 1; });
  });
  EXPECT_EQ(end.exit_code, 0) << end;
  for (const std::string& row : expected) EXPECT_GE(count(end.err, row), 1) << row << "\n" << end;
}

const test::scenario heavy("heavy", [] {
  weft::run(
      [] {
        weft::wait_group wg;
        for (int i = 0; i < 20'000; ++i) {
          wg.go([i] {
            weft::yield();
            if (i % 3 == 0) weft::sleep_for(std::chrono::microseconds(i % 100));
          });
        }
        wg.wait();
      },
      {.procs = 4});
});

TEST(schedtrace, does_not_disturb_a_busy_program) {
  const auto end = heavy.run({{"WEFTDEBUG", "schedtrace=1,scheddetail=1"}});
  EXPECT_EQ(end.exit_code, 0) << end.err.substr(0, 2000);
  EXPECT_FALSE(end.timed_out);
}

}  // namespace
