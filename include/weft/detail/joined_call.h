// A function whose end somebody waits for. Whoever waits may rely on the function's captures being destroyed by then,
// as after std::thread::join(); so the function is destroyed in place, and only then the end is told.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <weft/detail/countdown.h>
#include <weft/detail/record.h>

namespace weft::detail {

// Counts the goroutines of an owner, and waits for the last of them.
class joined_count : public countdown {
 public:
  constexpr joined_count() noexcept : countdown(0) {}

  // In a new goroutine, which is counted already. After submit() this object may be gone: the goroutine may have ended, and who
  // waited for it have destroyed us.
  template <class Call>
  [[gnu::always_inline]] void start(Call&& call) {
    detail::record* r = detail::make_record(std::forward<Call>(call));
    newest_.store(r, std::memory_order_relaxed);
    detail::submit(r);
  }

  // Parks until the count is zero. In turn: who starts many and waits sees them run in the usual order; but in a tree of them the
  // newest may go first, so that few are begun at a time.
  void join(const void* owner) noexcept {
    if (is_zero()) return;
    if (const detail::record* r = newest_.load(std::memory_order_relaxed)) {
      join_in_place(r, owner, wait_reason::wait_group, true);
      while (!is_zero() && join_in_place(nullptr, owner, wait_reason::wait_group, false)) {
      }
    }
    wait(wait_reason::wait_group);
  }

 private:
  std::atomic<const detail::record*> newest_{nullptr};  // only compared
};

// It begins with the owner, and may run on the stack of who waits for it (see join_in_place).
// Owner: run(F&) calls the function, done() is told the end. Both are called once, in a new goroutine.
template <class Owner, class F>
class joined_call {
 public:
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

template <class Owner, class F>
inline constexpr bool begins_with_joiner<joined_call<Owner, F>> = true;

}  // namespace weft::detail
