// counting_semaphore and binary_semaphore: as in std, for goroutines and plain threads alike. First come, first served.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include <weft/detail/time.h>

namespace weft {

namespace detail {

struct waiter;

// A count that nobody takes below zero. Who has to wait is given its permit by the release itself: it is never there
// for others to take, and who was woken need not look at the semaphore again.
//
//   word_   count (from bit 2), waiting, guard. waiting: the queue is not empty, and then the count is zero. Changed
//   with
//           the guard. Permits are taken, and added while nobody waits, by one compare-and-swap without the guard
//   head_   the queue, behind the guard
//
//   [semaphore.release] release: what led to a release is visible to who takes a permit with acquire
class semaphore_core {
 public:
  static constexpr std::ptrdiff_t limit = std::numeric_limits<std::ptrdiff_t>::max() >> 2;

  constexpr explicit semaphore_core(std::ptrdiff_t count) noexcept : word_(count * one) {}
  semaphore_core(const semaphore_core&) = delete;
  semaphore_core& operator=(const semaphore_core&) = delete;

  bool try_acquire() noexcept {
    std::int64_t w = word_.load(std::memory_order_relaxed);
    while (w >= one) {
      // [semaphore.release]
      if (word_.compare_exchange_weak(w, w - one, std::memory_order_acquire, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  // False: the deadline came first.
  bool acquire_until(std::int64_t deadline_ns) noexcept { return try_acquire() || acquire_slow(deadline_ns); }

  // Throws std::logic_error if the count would exceed `max`.
  void release(std::ptrdiff_t n, std::ptrdiff_t max) {
    std::int64_t w = word_.load(std::memory_order_relaxed);
    while ((w & waiting) == 0) {
      if (n < 0 || n > max - (w >> 2)) misused();
      // [semaphore.release]
      if (word_.compare_exchange_weak(w, w + n * one, std::memory_order_release, std::memory_order_relaxed)) return;
    }
    release_slow(n, max);
  }

 private:
  static constexpr std::int64_t guard = 1, waiting = 2, one = 4;

  bool acquire_slow(std::int64_t deadline_ns) noexcept;
  bool queue_up(waiter& self) noexcept;
  bool withdraw(waiter& self) noexcept;
  void release_slow(std::ptrdiff_t n, std::ptrdiff_t max);
  [[noreturn]] static void misused();

  std::atomic<std::int64_t> word_;
  waiter* head_ = nullptr;
};

}  // namespace detail

template <std::ptrdiff_t LeastMax = detail::semaphore_core::limit>
class counting_semaphore {
  static_assert(LeastMax >= 0);

 public:
  static constexpr std::ptrdiff_t max() noexcept { return LeastMax; }

  // std::invalid_argument if it is less than 0 or more than max().
  constexpr explicit counting_semaphore(std::ptrdiff_t desired) : core_(std::min(checked(desired), detail::semaphore_core::limit)) {}
  counting_semaphore(const counting_semaphore&) = delete;
  counting_semaphore& operator=(const counting_semaphore&) = delete;

  // More than max() permits, or fewer than none, are a std::logic_error.
  void release(std::ptrdiff_t update = 1) { core_.release(update, std::min(LeastMax, detail::semaphore_core::limit)); }

  void acquire() noexcept { core_.acquire_until(detail::no_deadline); }
  bool try_acquire() noexcept { return core_.try_acquire(); }

  template <class Rep, class Period>
  bool try_acquire_for(const std::chrono::duration<Rep, Period>& d) {
    return core_.try_acquire() || core_.acquire_until(detail::deadline_after(d));
  }
  template <class Clock, class Duration>
  bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& t) {
    if (core_.try_acquire()) return true;
    // Another clock than the steady one may be set meanwhile: ask it again.
    while (!detail::has_come(t)) {
      if (core_.acquire_until(detail::deadline_at(t))) return true;
    }
    return false;
  }

 private:
  static constexpr std::ptrdiff_t checked(std::ptrdiff_t desired) {
    if (desired < 0 || desired > LeastMax) throw std::invalid_argument("weft::counting_semaphore: as many permits cannot be");
    return desired;
  }

  detail::semaphore_core core_;
};

using binary_semaphore = counting_semaphore<1>;

}  // namespace weft
