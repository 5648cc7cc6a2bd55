// Calls that block the thread: system calls and libraries that know nothing of goroutines.
#pragma once

#include <utility>

#include <weft/detail/errno.h>

namespace weft {

namespace detail {

void begin_blocking() noexcept;
void end_blocking() noexcept;

}  // namespace detail

// While it exists, this goroutine may block its thread: if that takes longer than some tens of microseconds, another
// thread runs the other goroutines meanwhile. A call into weft inside the scope is allowed, and ends its effect. On a
// plain thread it does nothing. Lives on the goroutine's stack.
class blocking_region {
 public:
  blocking_region() noexcept { detail::begin_blocking(); }
  ~blocking_region() { detail::end_blocking(); }
  blocking_region(const blocking_region&) = delete;
  blocking_region& operator=(const blocking_region&) = delete;
};

// Runs f on this thread, in a blocking_region, and returns what it returns.
template <class F>
decltype(auto) blocking(F&& f) {
  blocking_region region;
  return std::forward<F>(f)();
}

}  // namespace weft
