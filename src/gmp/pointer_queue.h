// A first-in first-out queue of pointers in blocks of 126, and a free list for the blocks. The objects themselves are
// never touched: with a million of them queued, following links through cold memory would cost more than running them.
// The caller locks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/memory.h"

namespace weft::gmp {

struct pointer_block {
  static constexpr std::uint32_t capacity = 126;
  pointer_block* next = nullptr;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  void* items[capacity];
};
static_assert(sizeof(pointer_block) == 1024);

// Blocks are carved from pages of the runtime's own (never malloc: the caller may be unstoppable) and never unmapped.
class pointer_block_pool {
 public:
  pointer_block* take() noexcept {
    if (free_ == nullptr) carve();
    pointer_block* b = free_;
    free_ = b->next;
    b->next = nullptr;
    b->begin = b->end = 0;
    return b;
  }
  void put(pointer_block* b) noexcept {
    b->next = free_;
    free_ = b;
  }

 private:
  void carve() noexcept {
    constexpr std::size_t bytes = 64 * 1024;
    auto* memory = static_cast<std::byte*>(os::map_memory(bytes));
    for (std::size_t at = 0; at < bytes; at += sizeof(pointer_block)) put(reinterpret_cast<pointer_block*>(memory + at));
  }

  pointer_block* free_ = nullptr;
};

class pointer_queue {
 public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  // Since the beginning.
  std::uint64_t pushed() const noexcept { return pushed_; }
  std::uint64_t popped() const noexcept { return pushed_ - size_; }

  void push(void* item) noexcept {
    if (tail_ == nullptr || tail_->end == pointer_block::capacity) append(pool_.take());
    tail_->items[tail_->end++] = item;
    ++size_;
    ++pushed_;
  }

  void* pop() noexcept {
    if (size_ == 0) return nullptr;
    void* item = head_->items[head_->begin++];
    --size_;
    if (head_->begin == head_->end) drop_head();
    return item;
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const pointer_block* b = head_; b != nullptr; b = b->next) {
      for (std::uint32_t i = b->begin; i < b->end; ++i) visit(b->items[i]);
    }
  }

 private:
  void append(pointer_block* b) noexcept {
    (tail_ == nullptr ? head_ : tail_->next) = b;
    tail_ = b;
  }
  void drop_head() noexcept {
    pointer_block* b = head_;
    head_ = b->next;
    if (head_ == nullptr) tail_ = nullptr;
    pool_.put(b);
  }

  pointer_block* head_ = nullptr;
  pointer_block* tail_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t pushed_ = 0;
  pointer_block_pool pool_;
};

}  // namespace weft::gmp
