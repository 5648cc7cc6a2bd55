// The runtime's own lock: a word that spins briefly and then sleeps on a futex. Held for tens of nanoseconds, by code
// that cannot be preempted in place (see machine::locks), so a spinning waiter waits for a running holder, except
// when the kernel has descheduled it: then the futex takes over.
//
//   word: 0 free, 1 held, 2 held and somebody may sleep
//
// Debug builds check the ranks of lock_ranks.h.
#pragma once

#include <atomic>

#include "base/futex.h"
#include "base/lock_ranks.h"

#if defined(__clang__)
#define WEFT_CAPABILITY(x) __attribute__((capability(x)))
#define WEFT_GUARDED_BY(x) __attribute__((guarded_by(x)))
#define WEFT_ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define WEFT_TRY_ACQUIRE(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define WEFT_RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define WEFT_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define WEFT_SCOPED_CAPABILITY __attribute__((scoped_lockable))
#define WEFT_NO_LOCK_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define WEFT_CAPABILITY(x)
#define WEFT_GUARDED_BY(x)
#define WEFT_ACQUIRE(...)
#define WEFT_TRY_ACQUIRE(...)
#define WEFT_RELEASE(...)
#define WEFT_REQUIRES(...)
#define WEFT_SCOPED_CAPABILITY
#define WEFT_NO_LOCK_ANALYSIS
#endif

namespace weft::base {

#ifdef WEFT_DEBUG_CHECKS
void rank_acquired(lock_rank rank, bool tried) noexcept;
void rank_released(lock_rank rank) noexcept;
#else
inline void rank_acquired(lock_rank, bool) noexcept {}
inline void rank_released(lock_rank) noexcept {}
#endif

class WEFT_CAPABILITY("mutex") mutex {
 public:
  constexpr explicit mutex(lock_rank rank) noexcept : rank_(rank) {}
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() noexcept WEFT_ACQUIRE() {
    rank_acquired(rank_, false);
    std::uint32_t free = 0;
    if (!word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) lock_slow();
  }

  bool try_lock() noexcept WEFT_TRY_ACQUIRE(true) {
    std::uint32_t free = 0;
    if (!word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) return false;
    rank_acquired(rank_, true);
    return true;
  }

  void unlock() noexcept WEFT_RELEASE() {
    rank_released(rank_);
    if (word_.exchange(0, std::memory_order_release) == 2) futex_wake(word_, 1);
  }

 private:
  void lock_slow() noexcept;

  futex_word word_{0};
  const lock_rank rank_;
};

template <class Mutex>
class WEFT_SCOPED_CAPABILITY lock_guard {
 public:
  explicit lock_guard(Mutex& m) noexcept WEFT_ACQUIRE(m) : m_(m) { m_.lock(); }
  ~lock_guard() WEFT_RELEASE() { m_.unlock(); }
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;

 private:
  Mutex& m_;
};

}  // namespace weft::base
