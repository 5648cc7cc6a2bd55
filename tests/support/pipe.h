// A pipe whose ends do not block the thread, for those who wait for descriptors.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace test {

struct nonblocking_pipe {
  int in, out;

  nonblocking_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    in = ends[0];
    out = ends[1];
  }
  ~nonblocking_pipe() {
    ::close(in);
    ::close(out);
  }
  nonblocking_pipe(const nonblocking_pipe&) = delete;
  nonblocking_pipe& operator=(const nonblocking_pipe&) = delete;

  void write() const {
    if (::write(out, "x", 1) != 1) std::abort();
  }
};

}  // namespace test
