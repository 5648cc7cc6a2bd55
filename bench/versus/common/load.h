// Runs net-load against a server of this process.
#pragma once

#include <cstdint>
#include <string>

#include "harness.h"

namespace bench {

struct load_shape {
  int connections;
  const char* kind;  // "echo", "http" or "wrk"
};

// Starts net-load, which is beside this program or where $NET_LOAD says; measures from when it has connected until it has
// its answers. With the kind "wrk" it is seconds rather than requests. Blocks the thread.
outcome run_load(std::uint16_t port, load_shape shape, std::uint64_t requests);

}  // namespace bench
