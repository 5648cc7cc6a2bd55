// fork: the child may exec, and nothing else that needs the runtime.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "support/fork.h"
#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

// As when a program calls exit() in a child, and has contexts among its static objects.
TEST(fork, a_child_may_destroy_contexts_and_ask_them) {
  weft::run([] {
    auto root = weft::with_cancel(weft::background());
    auto child = std::make_unique<std::pair<weft::context, weft::cancel_function>>(weft::with_cancel(root.first));
    weft::async([&] {
      const pid_t pid = ::fork();
      if (pid == 0) {
        const bool canceled = static_cast<bool>(child->first.error());
        child.reset();
        ::_exit(canceled ? 1 : 0);
      }
      EXPECT_EQ(test::status_of(pid), 0);
    }).get();
  });
}

TEST(fork, and_exec_work_at_any_time) {
  weft::run([] {
    weft::wait_group wg;
    for (int i = 0; i < 8; ++i) {
      wg.go([] {
        for (int k = 0; k < 5; ++k) {
          const pid_t child = ::fork();
          if (child == 0) {
            ::execlp("true", "true", static_cast<char*>(nullptr));
            ::_exit(99);
          }
          EXPECT_EQ(test::status_of(child), 0);
          weft::yield();
        }
      });
      wg.go([] {
        for (int k = 0; k < 1000; ++k) weft::yield();
      });
    }
    wg.wait();
  });
}

// In the child: exits 0 if it is still there afterwards.
template <class F>
int in_child(F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    ::_exit(0);
  }
  return test::status_of(child);
}

const test::scenario yields("yields", [] {
  weft::run([] { EXPECT_EQ(WTERMSIG(in_child([] { weft::yield(); })), SIGABRT); });
});
const test::scenario spawns("spawns", [] {
  weft::run([] { EXPECT_EQ(WTERMSIG(in_child([] { weft::go([] {}); })), SIGABRT); });
});
const test::scenario spawns_from_a_thread("spawns_from_a_thread", [] {
  weft::start();
  EXPECT_EQ(WTERMSIG(in_child([] { weft::go([] {}); })), SIGABRT);
});
const test::scenario runs_again("runs_again", [] {
  weft::run([] {});
  EXPECT_EQ(WTERMSIG(in_child([] { weft::run([] {}); })), SIGABRT);
});

const test::scenario stops_tracing("stops_tracing", [] {
  weft::trace::start("/dev/null");
  weft::run([] {});
  EXPECT_EQ(WTERMSIG(in_child([] { weft::trace::stop(); })), SIGABRT);
  weft::trace::stop();
});

TEST(fork, makes_a_call_into_weft_in_the_child_a_clear_fatal_error) {
  for (const test::scenario* s : {&yields, &spawns, &spawns_from_a_thread, &runs_again, &stops_tracing}) {
    const test::outcome end = s->run();
    EXPECT_NE(end.err.find("in the child of a fork"), std::string::npos) << end;
    EXPECT_FALSE(end.died()) << end;
  }
}

// A child that exits destroys its copies of static objects. The poller and the paths of sockets are shared with the parent.
std::string path_of_listener() { return "/tmp/weft-fork-" + std::to_string(::getppid()) + "-" + std::to_string(::getpid()); }

int status_of_exiting_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    test::is_forked_child = true;
    std::exit(0);
  }
  return test::status_of(child);
}

const test::scenario exits_with_sockets("exits_with_sockets", [] {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
  const std::string path = path_of_listener();
  static weft::pollable in(pipe[0]);
  static weft::net::listener listener = weft::net::listen_unix(path);
  std::error_code ec;
  weft::start();
  in.set_deadline(std::chrono::steady_clock::now() + 10ms);
  in.wait_readable(ec);  // it is watched from now on
  in.set_deadline(std::chrono::steady_clock::time_point::max());
  EXPECT_EQ(status_of_exiting_child(), 0);
  EXPECT_EQ(weft::async(status_of_exiting_child).get(), 0);
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  EXPECT_EQ(::write(pipe[1], "x", 1), 1);
  in.wait_readable(ec);  // for ever, if the child has taken it out of the poller
  EXPECT_FALSE(ec) << ec;
  listener.close();
  std::printf("well\n");
});
TEST(fork, and_exit_of_the_child_leaves_the_sockets_of_the_parent_alone) {
  const auto end = exits_with_sockets.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.out.find("well"), 0u) << end;
}

const test::scenario exits_with_timers("exits_with_timers", [] {
  static std::vector<weft::timer> timers;
  for (int i = 0; i < 1000; ++i) timers.push_back(weft::after_func(1h, [] {}));
  for (weft::timer& t : timers) t.stop();
  EXPECT_EQ(status_of_exiting_child(), 0);
  EXPECT_EQ(weft::async(status_of_exiting_child).get(), 0);
  std::printf("well\n");
});
TEST(fork, and_exit_of_the_child_destroys_its_copies_of_timers) {
  const auto end = exits_with_timers.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.out.find("well"), 0u) << end;
}

}  // namespace
