// Something that happens once, and those who wait for it: the heart of future. It also decides who of the two ends of a
// future, the one that makes it happen and the one that wants to know, is the last to leave.
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/detail/errno.h>

namespace weft::detail {

class event {
 public:
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;

  bool is_set() const noexcept { return word_.load(std::memory_order_acquire) == done; }  // [event.done]

  // Once. True: nobody wants to know any more (abandon()), and the object is the caller's to destroy. Otherwise a waiter may
  // destroy it as soon as it was woken: set() does not touch it after that.
  bool set() noexcept {
    if (word_.load(std::memory_order_relaxed) != in_place) return set_for_others();
    word_.store(done, std::memory_order_relaxed);
    return false;
  }

  // Nobody waits any more. True: it has happened, and the object is the caller's to destroy. Otherwise it is set()'s.
  [[nodiscard]] bool abandon() noexcept;

  // The only one who may wait makes it happen itself, before anything else: set() then has nobody to tell.
  void set_in_place() noexcept { word_.store(in_place, std::memory_order_relaxed); }

  // Parks until set(). Any number may wait.
  void wait() noexcept {
    if (!is_set()) wait_slow();
  }

  // As wait(); false if `deadline_ns` (CLOCK_MONOTONIC) came first.
  bool wait_until(std::int64_t deadline_ns) noexcept;

 private:
  static constexpr std::uintptr_t done = 1;
  static constexpr std::uintptr_t locked = 2;
  static constexpr std::uintptr_t abandoned = 4;
  static constexpr std::uintptr_t in_place = 5;

  struct waiter;
  bool set_for_others() noexcept;
  void wait_slow() noexcept;
  bool add(waiter& w) noexcept;
  void remove(waiter& w) noexcept;
  std::uintptr_t lock_list() noexcept;

  // 0: nobody waits. done, abandoned, in_place: as above. Else the newest waiter; with `locked`, a timed-out waiter is
  // unlinking itself.
  std::atomic<std::uintptr_t> word_{0};
};

}  // namespace weft::detail
