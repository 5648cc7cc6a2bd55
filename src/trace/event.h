// What the execution trace is made of: facts of 32 bytes, written down where they happen and understood later, by
// trace/perfetto.cpp.
#pragma once

#include <cstdint>

namespace weft::trace {

enum class kind : std::uint8_t {
  started,      // the P runs goroutine `a` from now on, which was spawned at address `b`
  stopped,      // it does not any more: `why`, and if it waits the `reason`
  born,         // the record `b` has become goroutine `a`
  origin,       // of the goroutine of the event before: it was spawned at address `b`
  found,        // when the trace began there was goroutine `a`, which did not run: `why` and `reason`
  name,         // of the goroutine of the event before: the next 16 bytes, in `a` and `b`; `number` is the whole length
  spawned,      // the record `b` is runnable
  readied,      // goroutine `a` is runnable again
  stole,        // the P has taken `number` goroutines from P `a`
  on_thread,    // the P is thread `number`'s from now on
  world_stops,  // from here
  world_goes,   // to here
  lost,         // `a` events: they came faster than they could be written
};

enum class why : std::uint8_t {
  waiting,
  runnable,
  ended,
  in_call,    // it may block its thread
  preempted,  // it lost its P in the midst of its own code
};

struct event {
  std::int64_t when = 0;
  trace::kind kind{};
  trace::why why{};
  std::uint8_t reason = 0;  // detail::wait_reason
  std::uint32_t number = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};
static_assert(sizeof(event) == 32);

// It belongs to the event before.
constexpr bool is_detail(const event& e) noexcept { return e.kind == kind::origin || e.kind == kind::name; }

}  // namespace weft::trace
