// The order in which runtime locks may be taken: a thread that holds a lock takes only locks further down this list.
#pragma once

#include <cstdint>

namespace weft::base {

enum class lock_rank : std::uint8_t {
  wait_queue, // channels, and the queues of the synchronization primitives
  timers,     // a P's timer heap
  poll,       // a poll descriptor
  sched,      // global queue, idle lists, thread requests
  stacks,     // the shared pools of free stacks
  blocks,     // the shared pools of spawn records and timers
  memory,     // arenas
  trace,      // the log of those without a P
  leaf,       // nothing is taken under it
};

}  // namespace weft::base
