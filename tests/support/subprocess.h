// Tests of what happens to a whole process: it dies, or it must be fresh, or it has its own environment.
//
//   const test::scenario overflows("overflows", [] { ...; });       // at namespace scope
//   TEST(...) { const test::outcome end = overflows.run(); EXPECT_EQ(end.signal, SIGABRT); }
//
// run() executes this very program again with the scenario's name in the environment, and the main() below, which
// takes the place of GoogleTest's, then calls the scenario's body and nothing else. (GoogleTest's own death tests fork
// a process that already has threads, or run the test's body from its beginning in the child.) A body that returns
// ends its process with exit code 0.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/build.h"

namespace test {

struct outcome {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;      // 0: exited
  bool timed_out = false;
  std::string out;
  std::string err;

  bool died() const { return signal != 0 || exit_code != 0; }
};

inline std::ostream& operator<<(std::ostream& os, const outcome& end) {
  os << (end.timed_out ? "timed out, " : "") << "exit code " << end.exit_code << ", signal " << end.signal;
  return os << "\n--- stdout\n" << end.out << "\n--- stderr\n" << end.err << "\n---\n";
}

using environment = std::vector<std::pair<std::string, std::string>>;

class scenario {
 public:
  scenario(const char* name, void (*body)()) : name_(name), body_(body), next_(first()) { first() = this; }
  scenario(const scenario&) = delete;
  scenario& operator=(const scenario&) = delete;

  outcome run(const environment& extra = {},
              std::chrono::seconds limit = std::chrono::seconds(under_sanitizer ? 240 : 180)) const;

  // In the child: runs the scenario that the environment names. False: this is no child.
  static bool run_named_one() {
    const char* const name = std::getenv(variable);
    if (name == nullptr) return false;
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    for (const scenario* s = first(); s != nullptr; s = s->next_) {
      if (std::strcmp(s->name_, name) != 0) continue;
      s->body_();
      return true;
    }
    std::fprintf(stderr, "no scenario is named %s\n", name);
    std::_Exit(99);
  }

 private:
  static constexpr const char* variable = "WEFT_TEST_SCENARIO";

  static const scenario*& first() {
    static const scenario* list = nullptr;
    return list;
  }

  const char* name_;
  void (*body_)();
  const scenario* next_;
};

namespace detail {

inline void check_errno(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

struct pipe_ends {
  int read = -1;
  int write = -1;

  pipe_ends() {
    int ends[2];
    check_errno(::pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    read = ends[0];
    write = ends[1];
  }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    ::close(read);
    close_write();
  }
  void close_write() {
    if (write >= 0) ::close(std::exchange(write, -1));
  }
};

inline std::vector<std::string> environment_with(const environment& extra) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line(*entry);
    const std::string key = line.substr(0, line.find('='));
    bool replaced = false;
    for (const auto& [name, value] : extra) replaced = replaced || name == key;
    if (!replaced) result.push_back(line);
  }
  for (const auto& [name, value] : extra) result.push_back(name + "=" + value);
  return result;
}

// Reads both pipes until the child has closed them. False: the limit came first.
inline bool read_all(int out, std::string& out_text, int err, std::string& err_text,
                     std::chrono::steady_clock::time_point end) {
  pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&out_text, &err_text};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    const int ready = ::poll(fds, 2, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    check_errno(ready >= 0, "poll");
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(n));
      } else {
        fds[i].fd = -1;
      }
    }
  }
  return true;
}

}  // namespace detail

inline outcome scenario::run(const environment& extra, std::chrono::seconds limit) const {
  detail::pipe_ends out;
  detail::pipe_ends err;

  environment variables = extra;
  variables.emplace_back(variable, name_);
  std::vector<std::string> lines = detail::environment_with(variables);
  std::vector<char*> envp;
  for (std::string& line : lines) envp.push_back(line.data());
  envp.push_back(nullptr);
  char program[] = "/proc/self/exe";
  char* argv[] = {program, nullptr};

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, program, &actions, nullptr, argv, envp.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::system_error(failure, std::generic_category(), "posix_spawn");
  out.close_write();
  err.close_write();

  outcome end;
  end.timed_out = !detail::read_all(out.read, end.out, err.read, end.err, std::chrono::steady_clock::now() + limit);
  if (end.timed_out) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) detail::check_errno(errno == EINTR, "waitpid");
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace test

int main(int argc, char** argv) {
  if (test::scenario::run_named_one()) return 0;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
