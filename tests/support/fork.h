// Children of fork() that go on in this very program. To be included by one file of it.
#pragma once

#include <cerrno>

#include <sys/wait.h>
#include <unistd.h>

namespace test {

// To be set by the child.
inline bool is_forked_child = false;

inline int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace test

// What the leak sanitizer asks at the exit of a process. In a child it would look for the stacks of threads that the child
// does not have: it calls what they hold leaked, or waits for them for ever.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return test::is_forked_child ? 1 : 0; }
