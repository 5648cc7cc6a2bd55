// async() and future: a goroutine whose result is waited for.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <weft/detail/event.h>
#include <weft/detail/time.h>
#include <weft/go.h>

namespace weft {

namespace detail {

template <class R>
struct future_value {
  std::optional<R> value;
  template <class F>
  void run(F& f) { value.emplace(std::invoke(std::move(f))); }
  R take() { return std::move(*value); }
};
template <class R>
struct future_value<R&> {
  R* value = nullptr;
  template <class F>
  void run(F& f) { value = std::addressof(std::invoke(std::move(f))); }
  R& take() { return *value; }
};
template <>
struct future_value<void> {
  template <class F>
  void run(F& f) { std::invoke(std::move(f)); }
  void take() {}
};

// Whether the exception being handled is exit_goroutine()'s.
bool handling_goroutine_exit() noexcept;

// Shared by the future and the goroutine that makes the value; the last of the two deletes it.
template <class R>
struct future_state {
  event ready;
  const record* child = nullptr;  // the goroutine's, as long as it has not begun; only compared
  std::exception_ptr error;
  future_value<R> result;
};

// What the goroutine of a future runs. It begins with what waits for its end.
template <class R, class F>
class future_call {
 public:
  template <class G>
  future_call(future_state<R>* s, G&& f) : state_(s), function_(std::forward<G>(f)) {}
  future_call(future_call&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : state_(other.state_), function_(std::move(other.function_)) {
    other.state_ = nullptr;  // only now: a function that cannot be moved stays where it is, with its promise
  }
  future_call(const future_call&) = delete;
  future_call& operator=(const future_call&) = delete;
  // If the function ends without a result (exit_goroutine), the promise is broken.
  ~future_call() {
    if (state_ == nullptr) return;
    state_->error = std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
    finish();
  }

  void operator()() {
    try {
      state_->result.run(function_);
    } catch (const std::exception&) {
      state_->error = std::current_exception();
    } catch (...) {
      if (handling_goroutine_exit()) throw;
      state_->error = std::current_exception();
    }
    finish();
  }

 private:
  void finish() noexcept {
    future_state<R>* s = std::exchange(state_, nullptr);
    if (s->ready.set()) delete s;
  }

  future_state<R>* state_;
  [[no_unique_address]] F function_;
};

template <class R, class F>
inline constexpr bool begins_with_joiner<future_call<R, F>> = true;

}  // namespace detail

// As std::future, for goroutines and plain threads alike. Its destructor does not wait.
template <class R>
class future {
 public:
  future() noexcept = default;
  future(future&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  future& operator=(future&& other) noexcept {
    if (this != &other) {
      reset();
      state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
  }
  future(const future&) = delete;
  future& operator=(const future&) = delete;
  ~future() { reset(); }

  bool valid() const noexcept { return state_ != nullptr; }

  // Parks until the value is there, and returns it or rethrows; the future is not valid() any more.
  // std::future_error (no_state) without a state, here and below.
  R get() {
    detail::future_state<R>& mine = state();
    join(mine, &mine.ready);
    struct deleter {
      detail::future_state<R>* s;
      ~deleter() { delete s; }
    } guard{std::exchange(state_, nullptr)};
    if (guard.s->error) std::rethrow_exception(std::move(guard.s->error));
    return guard.s->result.take();
  }

  void wait() const { join(state(), nullptr); }

  template <class Rep, class Period>
  std::future_status wait_for(const std::chrono::duration<Rep, Period>& d) const {
    return wait_until_ns(detail::deadline_after(d));
  }
  template <class Clock, class Duration>
  std::future_status wait_until(const std::chrono::time_point<Clock, Duration>& t) const {
    // Another clock than the steady one may be set meanwhile: ask it again.
    while (wait_until_ns(detail::deadline_at(t)) == std::future_status::timeout) {
      if (detail::has_come(t)) return std::future_status::timeout;
    }
    return std::future_status::ready;
  }

 private:
  template <class F>
  friend auto async(F&& f) -> future<std::invoke_result_t<std::decay_t<F>>>;

  explicit future(detail::future_state<R>* s) noexcept : state_(s) {}

  detail::future_state<R>& state() const {
    if (state_ == nullptr) throw std::future_error(std::future_errc::no_state);
    return *state_;
  }
  // `sole`: nobody else waits.
  static void join(detail::future_state<R>& s, detail::event* sole) noexcept {
    if (!s.ready.is_set() && !detail::join_in_place(s.child, &s, detail::wait_reason::future, false, sole)) s.ready.wait();
  }
  std::future_status wait_until_ns(std::int64_t deadline) const {
    return state().ready.wait_until(deadline) ? std::future_status::ready : std::future_status::timeout;
  }
  void reset() noexcept {
    detail::future_state<R>* s = std::exchange(state_, nullptr);
    if (s != nullptr && s->ready.abandon()) delete s;
  }

  detail::future_state<R>* state_ = nullptr;
};

// Runs f in a new goroutine; the future has its result, or the exception that left it.
template <class F>
[[gnu::always_inline]] inline auto async(F&& f) -> future<std::invoke_result_t<std::decay_t<F>>> {  // as go(): for dumps
  using R = std::invoke_result_t<std::decay_t<F>>;
  auto state = std::make_unique<detail::future_state<R>>();
  detail::future_call<R, std::decay_t<F>> call(state.get(), std::forward<F>(f));  // throws: the state is ours still
  future<R> result(state.release());
  result.state_->child = detail::spawn(std::move(call));
  return result;
}

}  // namespace weft
