// WEFTDEBUG=name=value,...: read once, when the runtime starts, before its first thread.
#pragma once

#include <cstdint>

namespace weft::sched {

struct debug_settings {
  std::int64_t schedtrace_ms = 0;  // schedtrace=MS: a line about the scheduler every so often; 0: none
  bool scheddetail = false;        // scheddetail=1: with a line for each P, M and G
  bool leaks = false;              // leaks=1: at the end of run(), the goroutines that it leaves behind
};

extern debug_settings debug;

// Unknown or malformed settings get one warning each and are ignored.
void read_debug_settings() noexcept;

}  // namespace weft::sched
