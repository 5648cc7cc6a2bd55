// Memory of timers that start a goroutine: most are stopped, and others are made soon. malloc and free would be a fifth of what such
// a timer costs, and far more for many at a time.
#pragma once

#include "sched/magazine_pool.h"

namespace weft::gmp {

struct alignas(64) timer_block {
  std::byte bytes[128];
};

}  // namespace weft::gmp

namespace weft::sched {

using gmp::timer_block;

extern magazine_pool<timer_block, false> timer_block_pool;

}  // namespace weft::sched
