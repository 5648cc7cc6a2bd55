// goroutine_local: a value per goroutine, made on first use and destroyed at the goroutine's end. On a plain thread: a
// value per thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {

// Keys are never used twice, so a value whose goroutine_local is gone is found by nobody. It lives on until its
// goroutine ends.
using local_key = std::uint64_t;

local_key new_local_key() noexcept;
void* find_local(local_key key) noexcept;  // null: this goroutine has none
void add_local(local_key key, void* value, void (*destroy)(void*));

}  // namespace detail

// Values are destroyed in the reverse order of their making. A destructor may use other goroutine_locals: those that
// are gone by then are made anew, and destroyed too.
template <class T>
class goroutine_local {
 public:
  // A value is T().
  goroutine_local() requires std::is_default_constructible_v<T>
  = default;
  explicit goroutine_local(std::function<T()> make) : make_(std::move(make)) {}
  goroutine_local(const goroutine_local&) = delete;
  goroutine_local& operator=(const goroutine_local&) = delete;

  T& operator*() const { return *get(); }
  T* operator->() const { return get(); }

 private:
  T* get() const {
    if (void* value = detail::find_local(key_)) return static_cast<T*>(value);
    std::unique_ptr<T> value = make();
    detail::add_local(key_, value.get(), [](void* p) { delete static_cast<T*>(p); });
    return value.release();
  }

  std::unique_ptr<T> make() const {
    if (make_) return std::unique_ptr<T>(new T(make_()));
    if constexpr (std::is_default_constructible_v<T>) return std::unique_ptr<T>(new T());
    throw std::bad_function_call();
  }

  const detail::local_key key_ = detail::new_local_key();
  std::function<T()> make_;
};

}  // namespace weft
