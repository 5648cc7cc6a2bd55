// Goroutines: starting one, and what one may ask about itself.
#pragma once

#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <weft/detail/record.h>

namespace weft {

// Go's `go f(args...)`: runs f(args...) in a new goroutine. Function and arguments are copied or moved as std::thread
// does it. Fire and forget: an exception that leaves f ends the program through std::terminate, with a report.
// From a plain thread it works too, and starts the runtime (with default options) if nobody has.
template <class F, class... Args>
  requires(!std::is_same_v<std::remove_cvref_t<F>, go_options> && std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>)
[[gnu::always_inline]] inline void go(F&& f, Args&&... args) {
  detail::spawn(std::forward<F>(f), std::forward<Args>(args)...);
}

// The same with a name and a stack size of its own.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
[[gnu::always_inline]] inline void go(go_options o, F&& f, Args&&... args) {
  using call = detail::bound_call<std::decay_t<F>, std::decay_t<Args>...>;
  detail::submit(detail::make_heap<call>(o, std::forward<F>(f), std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)));
}

// Lets others run (Go's runtime.Gosched): this goroutine goes to the back of its queue. On a plain thread it yields
// the thread.
void yield();

// Ends this goroutine (Go's runtime.Goexit) after running the destructors of its frames. It travels as an exception that
// is not a std::exception: a `catch (...)` on its way must rethrow it. Throws std::logic_error on a plain thread.
[[noreturn]] void exit_goroutine();

// The number of this goroutine: unique in the process, never reused. 0 on a thread that runs no goroutine.
std::uint64_t goroutine_id();

bool in_goroutine();

// Ties this goroutine to its thread until as many calls of unlock_os_thread(): the goroutine runs on no other, and the
// thread runs no other goroutine. For libraries that keep state a thread, or demand one. run()'s goroutine is tied to
// the thread that called run(). If a goroutine ends while it is tied, its thread ends too. Nothing happens on a plain thread,
// nor when an unlock has no lock.
void lock_os_thread();
void unlock_os_thread();

// A cheap point at which a long computation lets others run if its time is up. Does nothing otherwise.
void checkpoint();

}  // namespace weft
