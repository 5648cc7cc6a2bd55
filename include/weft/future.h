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
  void run(F& f) { value.emplace(std::invoke(f)); }
  R take() { return std::move(*value); }
};
template <class R>
struct future_value<R&> {
  R* value = nullptr;
  template <class F>
  void run(F& f) { value = std::addressof(std::invoke(f)); }
  R& take() { return *value; }
};
template <>
struct future_value<void> {
  template <class F>
  void run(F& f) { std::invoke(f); }
  void take() {}
};

// Shared by the future and the goroutine that makes the value; the last of the two deletes it.
template <class R>
struct future_state {
  std::atomic<int> owners{2};
  event ready;
  std::exception_ptr error;
  future_value<R> result;

  void release() noexcept {
    if (owners.load(std::memory_order_acquire) == 1 || owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

// The goroutine's end of a future. If the function ends without a result (exit_goroutine), the promise is broken.
template <class R>
class future_maker {
 public:
  explicit future_maker(future_state<R>* s) noexcept : state_(s) {}
  future_maker(future_maker&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  future_maker(const future_maker&) = delete;
  future_maker& operator=(const future_maker&) = delete;
  ~future_maker() {
    if (state_ == nullptr) return;
    state_->error = std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
    finish();
  }

  template <class F>
  void run(F& f) {
    try {
      state_->result.run(f);
    } catch (const std::exception&) {
      state_->error = std::current_exception();
    } catch (...) {
      if (is_goroutine_exit()) throw;
      state_->error = std::current_exception();
    }
    finish();
  }

 private:
  static bool is_goroutine_exit() noexcept;
  void finish() noexcept {
    future_state<R>* s = std::exchange(state_, nullptr);
    s->ready.set();
    s->release();
  }

  future_state<R>* state_;
};

// Whether the exception being handled is exit_goroutine()'s.
bool handling_goroutine_exit() noexcept;

template <class R>
bool future_maker<R>::is_goroutine_exit() noexcept { return handling_goroutine_exit(); }

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
    wait();
    struct releaser {
      detail::future_state<R>* s;
      ~releaser() { s->release(); }
    } guard{std::exchange(state_, nullptr)};
    if (guard.s->error) std::rethrow_exception(std::move(guard.s->error));
    return guard.s->result.take();
  }

  void wait() const { state().ready.wait(); }

  template <class Rep, class Period>
  std::future_status wait_for(const std::chrono::duration<Rep, Period>& d) const {
    return wait_until_ns(detail::deadline_after(d));
  }
  template <class Clock, class Duration>
  std::future_status wait_until(const std::chrono::time_point<Clock, Duration>& t) const {
    // Another clock than the steady one may be set meanwhile: ask it again.
    while (wait_until_ns(detail::deadline_at(t)) == std::future_status::timeout) {
      if (Clock::now() >= t) return std::future_status::timeout;
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
  std::future_status wait_until_ns(std::int64_t deadline) const {
    return state().ready.wait_until(deadline) ? std::future_status::ready : std::future_status::timeout;
  }
  void reset() noexcept {
    if (state_ != nullptr) std::exchange(state_, nullptr)->release();
  }

  detail::future_state<R>* state_ = nullptr;
};

// Runs f in a new goroutine; the future has its result, or the exception that left it.
template <class F>
auto async(F&& f) -> future<std::invoke_result_t<std::decay_t<F>>> {
  using R = std::invoke_result_t<std::decay_t<F>>;
  auto* state = new detail::future_state<R>;
  future<R> result(state);
  struct guarded {
    detail::future_state<R>* s;
    ~guarded() {
      if (s != nullptr) s->release();
    }
  } guard{state};
  go([maker = detail::future_maker<R>(std::exchange(guard.s, nullptr)), function = std::decay_t<F>(std::forward<F>(f))]() mutable {
    maker.run(function);
  });
  return result;
}

}  // namespace weft
