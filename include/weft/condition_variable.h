// condition_variable: as in std, for goroutines and plain threads alike, with std::unique_lock<weft::mutex> or any
// other lock, and with the stop_token forms that std has in condition_variable_any.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <weft/detail/time.h>
#include <weft/mutex.h>

namespace weft {

namespace detail {

struct waiter;

[[noreturn]] void throw_wait_without_lock();

// A lock and a predicate, of whatever type.
struct lock_ref {
  void* lock;
  void (*unlock_it)(void*);
  void (*lock_it)(void*);

  template <class Lock>
  explicit lock_ref(Lock& l)
      : lock(std::addressof(l)),
        unlock_it([](void* p) { static_cast<Lock*>(p)->unlock(); }),
        lock_it([](void* p) { static_cast<Lock*>(p)->lock(); }) {
    if constexpr (requires { { l.owns_lock() } -> std::same_as<bool>; }) {
      if (!l.owns_lock()) throw_wait_without_lock();
    }
  }
};

struct predicate_ref {
  void* predicate;
  bool (*call)(void*);

  template <class Predicate>
  explicit predicate_ref(Predicate& p) noexcept
      : predicate(const_cast<void*>(static_cast<const void*>(std::addressof(p)))),
        call([](void* q) { return static_cast<bool>((*static_cast<Predicate*>(q))()); }) {}
  bool operator()() const { return call(predicate); }
};

}  // namespace detail

// To wait with a std::unique_lock that has not locked is a std::logic_error. notify_one() wakes the longest waiter. It may be
// destroyed once every waiter was notified, even if some have not yet left wait().
//
//   word_   waiting (the queue is not empty), guard (src/sync/guard.h)
//   head_   the queue, behind the guard
//
//   [cond.wait] release: a waiter is in the queue before it unlocks, so who locks after it and notifies sees it
class condition_variable {
 public:
  constexpr condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
  ~condition_variable() {
    if (word_.load(std::memory_order_acquire) != 0) await_late_waiters();
  }

  void notify_one() noexcept {
    if (somebody_waits()) notify(false);
  }
  void notify_all() noexcept {
    if (somebody_waits()) notify(true);
  }

  template <class Lock>
  void wait(Lock& lock) {
    wait_until_ns(detail::lock_ref(lock), detail::no_deadline);
  }
  template <class Lock, class Predicate>
  requires std::is_invocable_v<Predicate&>
  void wait(Lock& lock, Predicate predicate) {
    while (!predicate()) wait(lock);
  }

  template <class Lock, class Clock, class Duration>
  std::cv_status wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& t) {
    if (wait_until_ns(detail::lock_ref(lock), detail::deadline_at(t))) return std::cv_status::no_timeout;
    // Another clock than the steady one may have been set meanwhile: then this is a spurious wake-up.
    return detail::has_come(t) ? std::cv_status::timeout : std::cv_status::no_timeout;
  }
  template <class Lock, class Clock, class Duration, class Predicate>
  requires std::is_invocable_v<Predicate&>
  bool wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& t, Predicate predicate) {
    while (!predicate()) {
      if (wait_until(lock, t) == std::cv_status::timeout) return predicate();
    }
    return true;
  }

  template <class Lock, class Rep, class Period>
  std::cv_status wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& d) {
    return wait_until_ns(detail::lock_ref(lock), detail::deadline_after(d)) ? std::cv_status::no_timeout
                                                                            : std::cv_status::timeout;
  }
  template <class Lock, class Rep, class Period, class Predicate>
  requires std::is_invocable_v<Predicate&>
  bool wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& d, Predicate predicate) {
    const std::int64_t deadline = detail::deadline_after(d);
    while (!predicate()) {
      if (!wait_until_ns(detail::lock_ref(lock), deadline)) return predicate();
    }
    return true;
  }

  // These return what the predicate says at the end: false if stop was requested, or time was up, first.
  template <class Lock, class Predicate>
  requires std::is_invocable_v<Predicate&>
  bool wait(Lock& lock, std::stop_token stop, Predicate predicate) {
    return wait_stop(detail::lock_ref(lock), stop, detail::predicate_ref(predicate), detail::no_deadline);
  }
  template <class Lock, class Clock, class Duration, class Predicate>
  requires std::is_invocable_v<Predicate&>
  bool wait_until(Lock& lock, std::stop_token stop, const std::chrono::time_point<Clock, Duration>& t,
                  Predicate predicate) {
    const detail::predicate_ref p(predicate);
    while (!wait_stop(detail::lock_ref(lock), stop, p, detail::deadline_at(t))) {
      if (stop.stop_requested() || detail::has_come(t)) return false;
    }
    return true;
  }
  template <class Lock, class Rep, class Period, class Predicate>
  requires std::is_invocable_v<Predicate&>
  bool wait_for(Lock& lock, std::stop_token stop, const std::chrono::duration<Rep, Period>& d, Predicate predicate) {
    return wait_stop(detail::lock_ref(lock), stop, detail::predicate_ref(predicate), detail::deadline_after(d));
  }

 private:
  struct cond_waiter;
  struct stopper;

  static constexpr std::uint32_t guard = 1, waiting = 2;

  bool somebody_waits() const noexcept { return word_.load(std::memory_order_acquire) != 0; }  // [cond.wait]
  void notify(bool all) noexcept;
  bool wait_until_ns(detail::lock_ref lock, std::int64_t deadline_ns);
  bool wait_stop(detail::lock_ref lock, const std::stop_token& stop, detail::predicate_ref predicate,
                 std::int64_t deadline_ns);

  void link(cond_waiter& self) noexcept;
  void unlock(detail::lock_ref lock, cond_waiter& self);
  void unlink(cond_waiter& self) noexcept;
  bool withdraw(cond_waiter& self) noexcept;
  bool sleep(cond_waiter& self, std::int64_t deadline_ns) noexcept;
  void await_late_waiters() noexcept;

  std::atomic<std::uint32_t> word_{0};
  detail::waiter* head_ = nullptr;
};

// It takes any lock.
using condition_variable_any = condition_variable;

}  // namespace weft
