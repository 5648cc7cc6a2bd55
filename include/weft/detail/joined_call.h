// A function whose end somebody waits for. Whoever waits may rely on the function's captures being destroyed by then,
// as after std::thread::join(); so the function is destroyed in place, and only then the end is told.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace weft::detail {

// It begins with the owner, and may run on the stack of who waits for it (see join_in_place).
// Owner: run(F&) calls the function, done() is told the end. Both are called once, in a new goroutine.
template <class Owner, class F>
class joined_call {
 public:
  static constexpr bool joined = true;

  template <class G>
  joined_call(Owner* owner, G&& f) : owner_(owner), function_(std::forward<G>(f)) {}
  joined_call(joined_call&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : owner_(other.owner_), function_(std::move(other.function_)) {}
  ~joined_call() {
    if (owner_ != nullptr) function_.~F();
  }

  void operator()() {
    struct finisher {
      joined_call* call;
      ~finisher() {
        Owner* owner = std::exchange(call->owner_, nullptr);
        call->function_.~F();
        owner->done();
      }
    } guard{this};
    owner_->run(function_);
  }

 private:
  Owner* owner_;  // null: the function is destroyed
  union {
    F function_;
  };
};

}  // namespace weft::detail
