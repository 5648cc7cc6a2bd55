// Something that happens once, and those who wait for it: the heart of future.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::detail {

class event {
 public:
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;

  bool is_set() const noexcept { return word_.load(std::memory_order_acquire) == done; }  // [event.done]

  // Once. The object may be destroyed by a waiter as soon as it was woken: set() does not touch it after that.
  void set() noexcept;

  // Parks until set(). Any number may wait.
  void wait() noexcept {
    if (!is_set()) wait_slow();
  }

  // As wait(); false if `deadline_ns` (CLOCK_MONOTONIC) came first.
  bool wait_until(std::int64_t deadline_ns) noexcept;

 private:
  static constexpr std::uintptr_t done = 1;
  static constexpr std::uintptr_t locked = 2;

  struct waiter;
  void wait_slow() noexcept;
  bool add(waiter& w) noexcept;
  void remove(waiter& w) noexcept;
  std::uintptr_t lock_list() noexcept;

  // 0: nobody waits. done: it has happened. Else the newest waiter; with `locked`, a timed-out waiter is unlinking itself.
  std::atomic<std::uintptr_t> word_{0};
};

}  // namespace weft::detail
