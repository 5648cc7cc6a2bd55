// A pointer that one thread writes and uses as its own, and that others may look at, knowing that it may have changed the
// next moment.
#pragma once

#include <atomic>

namespace weft::base {

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
