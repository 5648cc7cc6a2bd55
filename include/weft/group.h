// group: goroutines that belong together. None outlives the group, and the first exception of one of them reaches who
// waits, while the others are asked to stop.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <weft/detail/countdown.h>
#include <weft/detail/joined_call.h>
#include <weft/detail/time.h>
#include <weft/go.h>
#include <weft/mutex.h>
#include <weft/once.h>
#include <weft/semaphore.h>

namespace weft {

class group {
 public:
  group() noexcept = default;
  group(const group&) = delete;
  group& operator=(const group&) = delete;
  // Waits. If it is an exception that destroys the group, requests stop first. An exception of a goroutine that no
  // wait() has rethrown is dropped.
  ~group();

  // Runs f() or f(token()) in a new goroutine of the group. Waits first while as many run as set_limit() allows.
  template <class F>
  requires(std::is_invocable_v<std::decay_t<F>> ||
           std::is_invocable_v<std::decay_t<F>, std::stop_token>) [[gnu::always_inline]] void go(F&& f) {  // as weft::go()
    begin();
    struct guard {
      group* self;
      ~guard() {
        if (self != nullptr) self->done();
      }
    } on_failure{this};
    running_.start(detail::joined_call<group, std::decay_t<F>>(this, std::forward<F>(f)));
    on_failure.self = nullptr;
  }

  // At most n run at the same time; n < 0: no limit. std::logic_error if n is 0, or while goroutines of the group run.
  void set_limit(int n);

  // Parks until all have ended. Then rethrows the first exception that left one, once.
  void wait();

  // Stop is requested when an exception has left a goroutine of the group; it stays requested.
  std::stop_token token() { return source().get_token(); }

 private:
  template <class Owner, class F>
  friend class detail::joined_call;

  template <class F>
  void run(F& f) {
    try {
      if constexpr (std::is_invocable_v<F, std::stop_token>) {
        std::invoke(std::move(f), token());
      } else {
        std::invoke(std::move(f));
      }
    } catch (...) {
      if (is_goroutine_exit()) throw;
      fail(std::current_exception());
    }
  }

  static bool is_goroutine_exit() noexcept;
  void begin();
  void done() noexcept;
  void fail(std::exception_ptr e) noexcept;
  std::stop_source& source();

  detail::joined_count running_;
  detail::semaphore_core permits_{0};
  int limit_ = -1;
  const int exceptions_outside_ = std::uncaught_exceptions();
  std::atomic<bool> failed_{false};  // the first to set it writes error_
  std::exception_ptr error_;         // read once all have ended
  once_flag source_made_;            // most groups never need one, and making it allocates
  std::stop_source source_{std::nostopstate};
};

}  // namespace weft
