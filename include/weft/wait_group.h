// wait_group: Go's sync.WaitGroup. Waits for a number of goroutines (or of anything that calls done()) to end.
#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

#include <weft/detail/countdown.h>
#include <weft/detail/joined_call.h>
#include <weft/go.h>

namespace weft {

// The counter may go up from zero only when nobody waits; it can be used again once every wait() has returned, and
// destroyed then.
class wait_group {
 public:
  constexpr wait_group() noexcept = default;
  wait_group(const wait_group&) = delete;
  wait_group& operator=(const wait_group&) = delete;

  // std::logic_error, and no change, if the counter would be negative; or if it goes up from zero while somebody still
  // waits, where that is noticed.
  [[gnu::always_inline]] void add(int delta = 1) {
    if (delta >= 0 ? !counter_.up(delta) : delta < -detail::countdown::max || !counter_.down(-delta)) misused(delta);
  }
  [[gnu::always_inline]] void done() {
    if (!counter_.down(1)) misused(-1);
  }

  // Parks until the counter is zero.
  void wait() noexcept { counter_.join(this); }

  // Runs f in a new goroutine that is counted: add(), then done() once f has returned and is destroyed.
  template <class F>
  requires std::is_invocable_v<std::decay_t<F>>
  [[gnu::always_inline]] void go(F&& f) {  // as weft::go(): for dumps
    add();
    struct guard {
      wait_group* self;
      ~guard() {
        if (self != nullptr) self->done();
      }
    } on_failure{this};
    counter_.start(detail::joined_call<wait_group, std::decay_t<F>>(this, std::forward<F>(f)));
    on_failure.self = nullptr;
  }

 private:
  template <class Owner, class F>
  friend class detail::joined_call;

  template <class F>
  void run(F& f) {
    std::invoke(std::move(f));
  }

  [[noreturn]] static void misused(int delta);

  detail::joined_count counter_;
};

}  // namespace weft
