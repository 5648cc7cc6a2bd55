// What one thread writes and uses as its own, and others may look at, knowing that it may have changed the next moment.
#pragma once

#include <atomic>

namespace weft::base {

template <class T>
class peekable_value {
 public:
  constexpr peekable_value() noexcept : value_(T()) {}
  explicit constexpr peekable_value(T value) noexcept : value_(value) {}
  peekable_value& operator=(T value) noexcept {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  T get() const noexcept { return value_.load(std::memory_order_relaxed); }
  operator T() const noexcept { return get(); }

 private:
  std::atomic<T> value_;
};

template <class T>
class peekable {
 public:
  constexpr peekable() noexcept = default;
  peekable& operator=(T* p) noexcept {
    value_.store(p, std::memory_order_relaxed);
    return *this;
  }
  T* get() const noexcept { return value_.load(std::memory_order_relaxed); }
  operator T*() const noexcept { return get(); }
  T* operator->() const noexcept { return get(); }
  T& operator*() const noexcept { return *get(); }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace weft::base
