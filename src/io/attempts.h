// Attempts at something that no event tells about: with pauses between them, each twice as long as the one before. The deadline of
// the descriptor and its close() end a pause.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "io/fd.h"
#include "os/clock.h"

namespace weft::io {

class attempts {
 public:
  attempts(direction which, std::chrono::nanoseconds first, std::chrono::nanoseconds longest) noexcept
      : which_(which), pause_(first.count()), longest_(longest.count()) {}

  // In an operation. 0: try again.
  int pause(fd& f) {
    const std::int64_t until = os::now_ns() + pause_;
    pause_ = std::min(2 * pause_, longest_);
    for (;;) {
      const int error = f.wait(which_, until);
      if (error == ETIMEDOUT) return f.check(which_);
      if (error != 0) return error;
    }
  }

 private:
  const direction which_;
  std::int64_t pause_;
  const std::int64_t longest_;
};

}  // namespace weft::io
