#include "gmp/goroutine.h"

namespace weft::gmp {

std::string_view to_string(status s) noexcept {
  constexpr std::string_view names[] = {"dead", "runnable", "running", "waiting", "syscall", "detached", "preempted"};
  static_assert(sizeof names / sizeof *names == static_cast<std::size_t>(status::count_));
  return s < status::count_ ? names[static_cast<std::size_t>(s)] : std::string_view("corrupt");
}

void bad_transition(const goroutine& g, status expected, status to) noexcept {
  base::fatal("goroutine ", g.id, ": cannot go from ", to_string(expected), " to ", to_string(to), ": it is ",
              to_string(g.state.load(std::memory_order_relaxed)));
}

}  // namespace weft::gmp
