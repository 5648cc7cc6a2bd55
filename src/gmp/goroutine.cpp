#include "gmp/goroutine.h"

#include "os/clock.h"

namespace weft::gmp {

std::string_view to_string(status s) noexcept {
  constexpr std::string_view names[] = {"dead", "runnable", "running", "waiting", "syscall", "detached", "preempted", "runnable"};
  static_assert(sizeof names / sizeof *names == static_cast<std::size_t>(status::count_));
  return s < status::count_ ? names[static_cast<std::size_t>(s)] : std::string_view("corrupt");
}

void bad_transition(const goroutine& g, status expected, status to) noexcept {
  base::fatal("goroutine ", g.id, ": cannot go from ", to_string(expected), " to ", to_string(to), ": it is ",
              to_string(g.state.load(std::memory_order_relaxed)));
}

constinit base::time_histogram latencies;

// waiting_since is free to say since when it is runnable.
void begin_timing(goroutine& g) noexcept {
  g.waiting_since.store(os::now_ns(), std::memory_order_relaxed);
  g.state.store(status::timed, std::memory_order_release);
}

void unexpected_transition(goroutine& g, status expected, status to) noexcept {
  const bool was_timed = g.state.load(std::memory_order_relaxed) == status::timed;
  if (!was_timed || expected != status::runnable || to != status::running) bad_transition(g, expected, to);
  latencies.add(os::now_ns() - g.waiting_since.load(std::memory_order_relaxed));
}

}  // namespace weft::gmp
