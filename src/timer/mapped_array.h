// An array straight from the kernel. Growth happens under a heap's lock, in code that cannot be stopped, so it never
// calls malloc: pages come from mmap, and mremap makes the array larger or smaller without copying it. Rejected: huge pages. A
// million timers are faster with them at best, and four times slower where mremap has to move such pages, or a guest's
// host has to find them first.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace weft::timers {

// mmap, mremap or munmap, as the sizes say; they are multiples of a page. Ends the program if there is no memory.
void* remap(void* old, std::size_t old_bytes, std::size_t bytes) noexcept;

template <class T>
class mapped_array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  constexpr mapped_array() noexcept = default;
  mapped_array(const mapped_array&) = delete;
  mapped_array& operator=(const mapped_array&) = delete;
  ~mapped_array() { resize(0); }

  T& operator[](std::size_t i) noexcept { return items_[i]; }
  const T& operator[](std::size_t i) const noexcept { return items_[i]; }
  std::size_t capacity() const noexcept { return capacity_; }

  // Keeps what fits; what is new is zero.
  void resize(std::size_t capacity) noexcept {
    items_ = static_cast<T*>(remap(items_, capacity_ * sizeof(T), capacity * sizeof(T)));
    capacity_ = capacity;
  }
  void swap(mapped_array& other) noexcept {
    std::swap(items_, other.items_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  T* items_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace weft::timers
