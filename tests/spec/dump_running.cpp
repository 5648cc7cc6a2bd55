// dump_goroutines shows where goroutines are that do not wait in weft: computing, asleep in a system call that nobody
// declared, inside weft::blocking. It does not disturb them, and does not wait for those that cannot be asked.
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "support/anywhere.h"

namespace {

using namespace std::chrono_literals;

const std::string no_stack = "stack unavailable";

std::string dump() {
  std::ostringstream out;
  weft::runtime::dump_goroutines(out);
  return out.str();
}

// The goroutines of a dump, one a paragraph.
std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", at), text.size());
    all.push_back(text.substr(at, end - at) + "\n");
    at = end + 2;
  }
  return all;
}

// The first one that has all of these words; empty if there is none.
template <class... Words>
std::string entry_with(const std::string& text, const Words&... words) {
  for (const std::string& e : entries_of(text)) {
    if (((e.find(words) != std::string::npos) && ...)) return e;
  }
  return "";
}

// How many have this word in their stack; equal stacks are shown once.
int goroutines_with(const std::string& text, const std::string& word) {
  int n = 0;
  for (const std::string& e : entries_of(text)) {
    if (e.find(word) == std::string::npos) continue;
    const auto more = e.find("... and ");
    n += 1 + (more == e.npos ? 0 : std::stoi(e.substr(more + 8)));
  }
  return n;
}

[[gnu::noinline]] void spin_here(const std::atomic<bool>& over) {
  while (!over.load(std::memory_order_relaxed)) {
  }
}

[[gnu::noinline]] void called_on_the_way(const std::atomic<bool>& over) {
  spin_here(over);
  asm volatile("");  // not a tail call
}

// Dumps have names only where libdw is: elsewhere these tests have nothing to look for.
bool names_are_known() {
  static const bool known = [] {
    bool answer = false;
    weft::run([&] { answer = dump().find("dump_running.cpp:") != std::string::npos; });
    return answer;
  }();
  return known;
}

#define NEEDS_NAMES() \
  if (!names_are_known()) GTEST_SKIP() << "no libdw, or no debugging information"

// ---- computing -----------------------------------------------------------------------------------------------------

enum class dumper { goroutine, thread };

class of_computing_goroutines : public testing::TestWithParam<std::tuple<int, dumper>> {
 protected:
  // As the goroutine, or the thread, that dumps.
  template <class F>
  void run(F f) {
    const auto [procs, who] = GetParam();
    weft::run(
        [&, who = who] {
          if (who == dumper::goroutine) return f();
          std::atomic<bool> done = false;
          std::thread outside([&] {
            f();
            done = true;
          });
          while (!done) weft::sleep_for(1ms);
          outside.join();
        },
        {.procs = procs});
  }
};

TEST_P(of_computing_goroutines, a_dump_shows_the_frames) {
  NEEDS_NAMES();
  run([] {
    std::atomic<bool> over = false;
    test::crew crew;
    for (int i = 0; i < 3; ++i) crew.goroutine([&] { called_on_the_way(over); });
    // Of all three: one may not have had its turn yet, and one that gets no core for long is shown without a stack.
    test::await([&] {
      const std::string text = dump();
      EXPECT_TRUE(entry_with(text, "spin_here").empty() ||
                  !entry_with(text, "spin_here", "called_on_the_way", "created by").empty())
          << text;
      return goroutines_with(text, "spin_here") == 3;
    });
    over = true;
  });
}

INSTANTIATE_TEST_SUITE_P(dumps, of_computing_goroutines,
                         testing::Combine(testing::Values(1, 2, 8),
                                          testing::Values(dumper::goroutine, dumper::thread)));

TEST(a_dump, shows_a_goroutine_that_computes_on_a_thread_of_its_own) {
  NEEDS_NAMES();
  weft::run(
      [] {
        std::atomic<bool> over = false;
        test::crew crew;
        crew.goroutine([&] {
          weft::lock_os_thread();
          spin_here(over);
          weft::unlock_os_thread();
        });
        test::await([&] { return !entry_with(dump(), "locked to thread", "spin_here").empty(); });
        over = true;
      },
      {.procs = 2});
}

// The walk finds malloc's frames, with its lock held or not.
TEST(a_dump, may_be_taken_while_goroutines_are_inside_malloc) {
  weft::run(
      [] {
        std::atomic<bool> over = false;
        test::crew crew;
        for (int i = 0; i < 4; ++i) {
          crew.goroutine([&] {
            while (!over) {
              std::vector<std::unique_ptr<char[]>> blocks;
              for (std::size_t n = 1; n < 40; ++n) blocks.push_back(std::make_unique<char[]>(n * 97));
            }
          });
        }
        for (int i = 0; i < (test::under_sanitizer ? 3 : 10); ++i) EXPECT_FALSE(dump().empty());
        over = true;
      },
      {.procs = 4});
}

// ---- asleep in the kernel ------------------------------------------------------------------------------------------

// A system call that blocks until end(), on the thread that makes it.
class blocked_call {
 public:
  blocked_call() { EXPECT_EQ(::pipe(ends_), 0); }
  blocked_call(const blocked_call&) = delete;
  virtual ~blocked_call() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  virtual void make() {
    tid_ = ::gettid();
    for (;;) {
      const long rc = call();
      if (rc >= 0) return;
      if (errno == EINTR) ++interruptions_;
    }
  }
  // Until its thread sleeps in it.
  void await_asleep() const {
    test::await([&] {
      const int tid = tid_;
      if (tid == 0) return false;
      std::ifstream in("/proc/self/task/" + std::to_string(tid) + "/stat");
      std::string line;
      std::getline(in, line);
      const auto at = line.rfind(") ");
      return at != line.npos && line[at + 2] == 'S';
    });
  }
  void end() { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }
  int interruptions() const { return interruptions_; }

 protected:
  virtual long call() = 0;
  int readable() const { return ends_[0]; }

 private:
  int ends_[2];
  std::atomic<int> tid_ = 0, interruptions_ = 0;
};

class read_of_a_pipe : public blocked_call {
  [[gnu::noinline]] long call() override {
    char c;
    const long n = ::read(readable(), &c, 1);
    asm volatile("");
    return n;
  }
};

// None of these goes on by itself after a signal, whatever SA_RESTART says.
class poll_of_a_pipe : public blocked_call {
  [[gnu::noinline]] long call() override {
    pollfd p{readable(), POLLIN, 0};
    const long n = ::poll(&p, 1, -1);
    asm volatile("");
    return n;
  }
};

class epoll_of_a_pipe : public blocked_call {
  [[gnu::noinline]] long call() override {
    const int fd = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event e{};
    e.events = EPOLLIN;
    ::epoll_ctl(fd, EPOLL_CTL_ADD, readable(), &e);
    const long n = ::epoll_wait(fd, &e, 1, -1);
    const int error = errno;
    ::close(fd);
    errno = error;
    return n;
  }
};

class sleep_without_weft : public blocked_call {
  [[gnu::noinline]] long call() override {
    pollfd p{readable(), POLLIN, 0};
    while (::poll(&p, 1, 0) == 0) {
      if (::usleep(3'000'000) != 0) return -1;
    }
    return 1;
  }
};

template <class Call>
class of_goroutines_asleep_in_a_call : public testing::Test {
 public:
  static void expect_shown_and_left_alone(const char* name, bool declared,
                                          std::vector<int> numbers_of_procs = {1, 2, 8}) {
    NEEDS_NAMES();
    for (const int procs : numbers_of_procs) {
      weft::run(
          [&] {
            Call c;
            test::crew crew;
            crew.goroutine([&] { declared ? weft::blocking([&] { c.make(); }) : c.make(); });
            const std::string call = std::string(name) + "::call", state = declared ? " [syscall" : " [running";
            // In the call: on the way to it, it may lose its P and be stopped, or sleep for another reason.
            test::await([&] { return !entry_with(dump(), call, state).empty(); });
            c.await_asleep();
            const int before = c.interruptions();
            for (int i = 0; i < 3; ++i) {
              const std::string text = dump();
              const std::string one = entry_with(text, call);
              EXPECT_NE(one.find("blocked_call::make"), std::string::npos) << text;
              EXPECT_NE(one.find(state), std::string::npos) << text;
            }
            EXPECT_EQ(c.interruptions(), before);
            c.end();
          },
          {.procs = procs});
    }
  }
};

using of_a_read = of_goroutines_asleep_in_a_call<read_of_a_pipe>;
TEST_F(of_a_read, a_dump_shows_it_and_does_not_disturb_it) { expect_shown_and_left_alone("read_of_a_pipe", false); }
TEST_F(of_a_read, a_dump_shows_it_inside_blocking) { expect_shown_and_left_alone("read_of_a_pipe", true); }

using of_a_poll = of_goroutines_asleep_in_a_call<poll_of_a_pipe>;
TEST_F(of_a_poll, a_dump_shows_it_and_does_not_disturb_it) { expect_shown_and_left_alone("poll_of_a_pipe", false); }
TEST_F(of_a_poll, a_dump_shows_it_inside_blocking) { expect_shown_and_left_alone("poll_of_a_pipe", true); }

using of_an_epoll = of_goroutines_asleep_in_a_call<epoll_of_a_pipe>;
TEST_F(of_an_epoll, a_dump_shows_it_and_does_not_disturb_it) { expect_shown_and_left_alone("epoll_of_a_pipe", false); }

using of_a_sleep = of_goroutines_asleep_in_a_call<sleep_without_weft>;
TEST_F(of_a_sleep, a_dump_shows_it_and_does_not_disturb_it) {
  expect_shown_and_left_alone("sleep_without_weft", false, {2});
}
TEST_F(of_a_sleep, a_dump_shows_it_inside_blocking) { expect_shown_and_left_alone("sleep_without_weft", true, {2}); }

// ---- in a blocking call --------------------------------------------------------------------------------------------

TEST(a_dump, shows_what_goes_on_inside_a_blocking_call) {
  NEEDS_NAMES();
  for (const int procs : {1, 2, 8}) {
    weft::run(
        [] {
          std::atomic<bool> over = false;
          test::crew crew;
          crew.goroutine([&] { weft::blocking([&] { called_on_the_way(over); }); });
          test::await([&] { return !entry_with(dump(), "[syscall]", "spin_here", "called_on_the_way").empty(); });
          over = true;
        },
        {.procs = procs});
  }
}

// ---- those that cannot be asked ------------------------------------------------------------------------------------

void set_mask(int how) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGURG);
  ::pthread_sigmask(how, &set, nullptr);
}

TEST(a_dump, does_not_wait_for_a_goroutine_that_blocks_the_signal) {
  weft::run(
      [] {
        std::atomic<bool> inside = false, over = false;
        test::crew crew;
        crew.goroutine([&] {
          weft::lock_os_thread();
          set_mask(SIG_BLOCK);
          inside = true;
          spin_here(over);
          set_mask(SIG_UNBLOCK);
          weft::unlock_os_thread();
        });
        test::await([&] { return inside.load(); });
        EXPECT_FALSE(entry_with(dump(), "[running, locked to thread]", no_stack).empty());
        over = true;
      },
      {.procs = 2});
}

std::atomic<int> foreign_signals = 0;

TEST(a_dump, leaves_a_handler_alone_that_the_program_has_put_in_wefts_place) {
  struct sigaction ours = {}, wefts = {};
  weft::run(
      [&] {
        ours.sa_handler = [](int) { ++foreign_signals; };
        ours.sa_flags = SA_RESTART;
        ::sigaction(SIGURG, &ours, &wefts);
        std::atomic<bool> inside = false, over = false;
        std::string text;
        test::crew crew;
        crew.thread([&] {
          test::await([&] { return inside.load(); });
          text = dump();
          over = true;
        });
        // In a declared call: nobody else wants to stop it.
        weft::blocking([&] {
          inside = true;
          spin_here(over);
        });
        crew.wait();
        EXPECT_FALSE(entry_with(text, "[syscall]").empty()) << text;
      },
      {.procs = 2});
  EXPECT_EQ(foreign_signals, 0);
  ::sigaction(SIGURG, &wefts, nullptr);
}

TEST(a_dump, may_be_taken_while_goroutines_fork) {
  weft::run(
      [] {
        std::atomic<bool> over = false;
        test::crew crew;
        for (int i = 0; i < 2; ++i) {
          crew.goroutine([&] {
            while (!over) {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(7);
              int status = 0;
              while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
              }
              EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
            }
          });
        }
        for (int i = 0; i < (test::under_sanitizer ? 3 : 10); ++i) EXPECT_FALSE(dump().empty());
        over = true;
      },
      {.procs = 4});
}

}  // namespace
