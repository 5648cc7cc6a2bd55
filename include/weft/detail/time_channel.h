// What timer, ticker and after() need of the runtime: a channel whose values come from the clock, and a timer that starts
// a goroutine. The first is told in src/chan/time_channel.h, the second in src/time/func_timer.cpp.
#pragma once

#include <weft/detail/chan_core.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace weft::detail {

using time_value = std::chrono::steady_clock::time_point;

// `when`: CLOCK_MONOTONIC in nanoseconds; 0: never. `period`: 0: once.
chan_core* make_time_channel(std::int64_t when, std::int64_t period);
// Drops the former deadline, and the value if it has come and nobody has received it. True if there was one of the two.
bool set_time_channel(chan_core* c, std::int64_t when, std::int64_t period) noexcept;

// One after_func(). Owned by its handle, by the timer heap while it is pending, and by each goroutine that calls it.
struct func_timer {
  void (*call)(func_timer*);
  void (*destroy)(func_timer*) noexcept;
  std::atomic<std::uint32_t> owners{1};  // the handle
  alignas(8) std::byte node[48];  // a timers::timer_node

  static void release(func_timer* t) noexcept {
    // [func_timer.owners] what the other owners did is visible to the last one, who destroys it. Who reads 1 is the only
    // owner, so nobody can add one.
    if (t->owners.load(std::memory_order_acquire) == 1 || t->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      t->destroy(t);
    }
  }
};

// Memory of a func_timer_of.
void* allocate_func_timer(std::size_t size);
void free_func_timer(void* p, std::size_t size) noexcept;

// Before the first of the others, and after the last.
void init_func_timer(func_timer* t);
void deinit_func_timer(func_timer* t) noexcept;

// A new one, which nobody else knows yet.
void start_func_timer(func_timer* t, std::int64_t when) noexcept;
// True: it was pending, and f will not be called for that deadline.
bool set_func_timer(func_timer* t, std::int64_t when);
bool stop_func_timer(func_timer* t) noexcept;

template <class F>
struct func_timer_of final : func_timer {
  template <class Function>
  explicit func_timer_of(Function&& f) : function(std::forward<Function>(f)) {
    call = [](func_timer* t) { static_cast<func_timer_of*>(t)->function(); };
    destroy = [](func_timer* t) noexcept { delete static_cast<func_timer_of*>(t); };
    detail::init_func_timer(this);
  }
  ~func_timer_of() { detail::deinit_func_timer(this); }

  static void* operator new(std::size_t size) { return allocate_func_timer(size); }
  static void operator delete(void* p, std::size_t size) noexcept { free_func_timer(p, size); }
  static void* operator new(std::size_t size, std::align_val_t a) { return ::operator new(size, a); }
  // Without the size: clang does not declare that one unless it is asked to.
  static void operator delete(void* p, std::size_t, std::align_val_t a) noexcept { ::operator delete(p, a); }

  [[no_unique_address]] F function;
};

}  // namespace weft::detail
