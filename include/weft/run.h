// Starting and stopping the runtime.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <weft/detail/record.h>

namespace weft {

struct options {
  int procs = 0;               // number of Ps. 0: $WEFTPROCS, else what affinity and cgroup quota allow
  std::size_t stack_size = 0;  // bytes reserved (not committed) for a goroutine's stack. 0: 256 KiB
  int max_threads = 10'000;    // more threads than this end the program
};

namespace detail {

// Brings the runtime up for run(), runs body(argument) as the main goroutine, and returns once it has ended and every
// other goroutine is frozen. Not from a goroutine.
void run_main(const options&, void (*body)(void*), void* argument);

}  // namespace detail

// Runs f as the main goroutine and returns what it returns (0 for void) once it does. No goroutine is scheduled after
// that: those left are frozen at their next call into weft until the next run() or start(), and a call that was under way comes to
// its end first, unless it waits: nothing is left half done that somebody else could wait for. May be called again, also
// with other options. An exception that leaves f leaves run(). exit_goroutine() in f: the others go on, and run() never
// returns. Throws std::invalid_argument for options that make no sense, std::logic_error from within a goroutine or while
// another run() is under way.
template <class F>
int run(F&& f, options o = {}) {
  struct frame {
    std::remove_reference_t<F>* function;
    int result = 0;
  } main{std::addressof(f)};

  detail::run_main(
      o,
      [](void* argument) {
        auto* m = static_cast<frame*>(argument);
        if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
          std::forward<F>(*m->function)();
        } else {
          m->result = static_cast<int>(std::forward<F>(*m->function)());
        }
        detail::keep_frame();
      },
      &main);
  return main.result;
}

// For a program that owns its own main: starts the runtime in the background. Idempotent: on a running one it does
// nothing, whatever the options. From a plain thread go(), async() and whatever needs a timer (after, timer, ticker, after_func,
// with_timeout, with_deadline; dial of a name with a timeout) do it by themselves with defaults. After run() or shutdown() that,
// too, lets the frozen goroutines go on. Channels, locks, sleeps, sockets and files need no goroutine and wake none.
void start(options o = {});

// Stops scheduling: when it returns, no goroutine is scheduled any more; those left are frozen as at the end of run().
// Not from a goroutine.
void shutdown();

}  // namespace weft
