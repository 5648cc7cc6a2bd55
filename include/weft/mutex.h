// mutex, timed_mutex, recursive_mutex: as in std, for goroutines and plain threads alike. Use them with
// std::lock_guard, std::unique_lock, std::scoped_lock and std::lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>  // std::lock_guard and its like, for those who use this

#include <weft/detail/park.h>
#include <weft/detail/time.h>

namespace weft {

namespace detail {

struct waiter;

// The lock that the mutexes are made of.
//
// Normally whoever comes first gets it: an unlock wakes the longest waiter, which then competes with those that are
// running. A waiter that loses this way after 1 ms makes the lock starving: from then on each unlock hands it over to
// the longest waiter, and nobody else gets it, until one that was handed the lock has waited less than that, or was the
// last.
//
//   word_     held      0: free. 1: somebody has the lock, and nothing else is set. 2: somebody has it, and there is (or
//                       was) more to see. Set by who takes it; cleared by its holder's unlock
//             guard     the queue is being changed (src/sync/guard.h)
//             queued    the queue is not empty. Changed with the guard
//             woken     a waiter was woken and is on its way: no unlock needs to wake another. Set by the unlock that
//                       wakes it; cleared by that waiter, as it takes the lock, queues again or gives up
//             starving  hand over. Set by a waiter that queues again; cleared by who was handed the lock, and with
//                       `queued`. While it is set, the lock is held: nobody can take it on the way
//   head_     the queue, behind the guard
//
// An unlock subtracts 1, which is the shortest that there is. From 1 that frees the lock. From 2 it does not: the lock is
// still held, by who then looks at the rest, and one compare-and-swap both frees it and decides whether somebody is to be
// woken. Either way the holder does not touch the mutex once another could have got it, and destroyed it. Hence the rule:
// who sets another bit of the word makes a 1 a 2 with it. (In the middle of an unlock, a 1 stands beside other bits; that
// its unlock has begun is known to its holder alone, and to others it is as good as a 2.)
// Lock and unlock look before they act: where others wait, an atomic step that fails costs as much as one that does not.
//   [mutex.unlock] release: what was done under the lock is visible to who takes it with acquire
class mutex_core {
 public:
  constexpr mutex_core() noexcept = default;
  mutex_core(const mutex_core&) = delete;
  mutex_core& operator=(const mutex_core&) = delete;

  [[gnu::always_inline]] void lock() noexcept {
    if (!take_if_untouched()) lock_slow(no_deadline);
  }
  // For a lock behind which nobody computes: shown as another wait, and no lock that is contended.
  void lock_as(wait_reason why) noexcept {
    if (!take_if_untouched()) lock_slow(no_deadline, why);
  }
  [[gnu::always_inline]] bool try_lock() noexcept { return take_if_untouched() || try_take(0); }

  // False: the deadline came first.
  bool lock_until(std::int64_t deadline_ns) noexcept { return take_if_untouched() || lock_slow(deadline_ns); }

  [[gnu::always_inline]] void unlock() noexcept {
    if (word_.load(std::memory_order_relaxed) != 1 || word_.fetch_sub(1, std::memory_order_release) != 1)  // [mutex.unlock]
      unlock_slow();
  }

 private:
  static constexpr std::uint32_t held = 3, guard = 4, queued = 8, woken = 16, starving = 32;

  [[gnu::always_inline]] bool take_if_untouched() noexcept {
    std::uint32_t w = word_.load(std::memory_order_relaxed);
    return w == 0 &&
           word_.compare_exchange_strong(w, 1, std::memory_order_acquire, std::memory_order_relaxed);  // [mutex.unlock]
  }

  // The rest of the word, with the lock held.
  static constexpr std::uint32_t held_with(std::uint32_t rest) noexcept {
    rest &= ~held;
    return rest | (rest == 0 ? 1 : 2);
  }

  std::uint32_t take_queue() noexcept;
  bool lock_slow(std::int64_t deadline_ns, wait_reason why = wait_reason::mutex_lock) noexcept;
  bool lock_later(std::int64_t deadline_ns, wait_reason why) noexcept;
  void unlock_slow() noexcept;
  bool try_take(std::uint32_t mine) noexcept;
  bool spin(std::uint32_t mine) noexcept;
  bool queue_up(waiter& self, std::uint32_t mine, bool starved) noexcept;
  bool withdraw(waiter& self) noexcept;
  bool take_or_pass_on() noexcept;
  void hand_on_or_wake() noexcept;

  std::atomic<std::uint32_t> word_{0};
  waiter* head_ = nullptr;
};

}  // namespace detail

// Not recursive. Unlocking one that is not locked ends the program. Fair under starvation: who has waited for 1 ms gets
// it next.
class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() noexcept { core_.lock(); }
  bool try_lock() noexcept { return core_.try_lock(); }
  void unlock() noexcept { core_.unlock(); }

 private:
  detail::mutex_core core_;
};
static_assert(sizeof(mutex) <= 16);

// A mutex whose lock can be given up waiting for.
class timed_mutex {
 public:
  constexpr timed_mutex() noexcept = default;
  timed_mutex(const timed_mutex&) = delete;
  timed_mutex& operator=(const timed_mutex&) = delete;

  void lock() noexcept { core_.lock(); }
  bool try_lock() noexcept { return core_.try_lock(); }
  void unlock() noexcept { core_.unlock(); }

  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
    return core_.try_lock() || core_.lock_until(detail::deadline_after(d));
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) {
    if (core_.try_lock()) return true;
    // Another clock than the steady one may be set meanwhile: ask it again.
    while (!detail::has_come(t)) {
      if (core_.lock_until(detail::deadline_at(t))) return true;
    }
    return false;
  }

 private:
  detail::mutex_core core_;
};

// Its holder (a goroutine or a plain thread) may lock it again; it is free after as many unlocks.
class recursive_mutex {
 public:
  constexpr recursive_mutex() noexcept = default;
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;

  void lock() noexcept {
    const std::uint64_t self = detail::self_number();
    if (!reenter(self)) {
      core_.lock();
      own(self);
    }
  }

  bool try_lock() noexcept {
    const std::uint64_t self = detail::self_number();
    if (reenter(self)) return true;
    if (!core_.try_lock()) return false;
    own(self);
    return true;
  }

  void unlock() noexcept;

 private:
  bool reenter(std::uint64_t self) noexcept {
    if (owner_.load(std::memory_order_relaxed) != self) return false;
    ++depth_;
    return true;
  }
  void own(std::uint64_t self) noexcept {
    owner_.store(self, std::memory_order_relaxed);
    depth_ = 1;
  }

  detail::mutex_core core_;
  // Compared with oneself only: who reads its own name here wrote it, under the lock that it still holds.
  std::atomic<std::uint64_t> owner_{0};
  std::size_t depth_ = 0;  // the holder's
};

}  // namespace weft
