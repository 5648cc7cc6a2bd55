// Blocks of one kind for all Ps: each P has magazines of its own, which it exchanges here when they are empty or full. Memory
// is never given back. It comes from arenas with huge pages, if the kind wants that: a guest whose host has to find such pages
// first waits for them far longer than for small ones.
#pragma once

#include <new>
#include <utility>

#include "base/prefetch.h"
#include "gmp/magazine.h"
#include "os/memory.h"
#include "sched/scheduler.h"

namespace weft::sched {

// Memory that is never given back. In a section, or on a plain thread.
std::byte* carve_memory(std::size_t bytes) noexcept;

template <class T, bool in_huge_pages = true>
class magazine_pool {
 public:
  using magazine = gmp::magazine<T>;
  using magazines = gmp::magazines<T>;

  // For the P that `own` belongs to.
  [[gnu::always_inline]] T* take(magazines& own) noexcept {
    if (own.current == nullptr || own.current->count == 0) [[unlikely]] refill(own);
    constexpr std::uint32_t ahead = 8;
    magazine& m = *own.current;
    T* item = m.items[--m.count];
    if (m.count >= ahead) base::prefetch_to_write(m.items[m.count - ahead]);
    return item;
  }

  [[gnu::always_inline]] void put(magazines& own, T* item) noexcept {
    if (own.current == nullptr || own.current->count == magazine::capacity) [[unlikely]] make_room(own);
    magazine& m = *own.current;
    m.items[m.count++] = item;
  }

  // All that the P has.
  void flush(magazines& own) noexcept {
    base::lock_guard guard(lock_);
    give_back(std::exchange(own.current, nullptr));
    give_back(std::exchange(own.other, nullptr));
  }

  // For plain threads.
  T* take_shared() noexcept {
    base::lock_guard guard(lock_);
    if (threads_ == nullptr || threads_->count == 0) exchange_for_full(threads_);
    return threads_->items[--threads_->count];
  }

  void put_shared(T* item) noexcept {
    base::lock_guard guard(lock_);
    if (threads_ == nullptr || threads_->count == magazine::capacity) exchange_for_empty(threads_);
    threads_->items[threads_->count++] = item;
  }

 private:
  [[gnu::noinline]] void refill(magazines& own) noexcept {
    std::swap(own.current, own.other);
    if (own.current != nullptr && own.current->count != 0) return;
    base::lock_guard guard(lock_);
    exchange_for_full(own.current);
  }

  [[gnu::noinline]] void make_room(magazines& own) noexcept {
    std::swap(own.current, own.other);
    if (own.current != nullptr && own.current->count == 0) return;
    base::lock_guard guard(lock_);
    exchange_for_empty(own.current);
  }

  static void push(magazine*& list, magazine* m) noexcept { m->next = std::exchange(list, m); }

  magazine* take_empty() noexcept WEFT_REQUIRES(lock_) {
    if (empty_ == nullptr) return ::new (carve_memory(sizeof(magazine))) magazine;
    return std::exchange(empty_, empty_->next);
  }

  magazine* take_full() noexcept WEFT_REQUIRES(lock_) {
    if (full_ != nullptr) return std::exchange(full_, full_->next);
    magazine* m = take_empty();
    constexpr std::size_t bytes = magazine::capacity * sizeof(T);
    std::byte* memory = in_huge_pages ? carve_memory(bytes) : static_cast<std::byte*>(os::map_memory(bytes));
    // Handed out in the order of their addresses: the hardware prefetches ascending lines.
    for (std::uint32_t i = magazine::capacity; i-- > 0;) m->items[m->count++] = ::new (memory + i * sizeof(T)) T;
    return m;
  }

  void give_back(magazine* m) noexcept WEFT_REQUIRES(lock_) {
    if (m != nullptr) push(m->count == 0 ? empty_ : full_, m);
  }

  void exchange_for_full(magazine*& m) noexcept WEFT_REQUIRES(lock_) {
    give_back(m);
    m = take_full();
  }

  void exchange_for_empty(magazine*& m) noexcept WEFT_REQUIRES(lock_) {
    give_back(m);
    m = take_empty();
  }

  base::mutex lock_{base::lock_rank::blocks};
  magazine* full_ WEFT_GUARDED_BY(lock_) = nullptr;  // or at least not empty
  magazine* empty_ WEFT_GUARDED_BY(lock_) = nullptr;
  magazine* threads_ WEFT_GUARDED_BY(lock_) = nullptr;  // plain threads' own
};

}  // namespace weft::sched
