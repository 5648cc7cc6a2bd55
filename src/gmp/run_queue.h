// A P's queue of runnable goroutines: a ring that its owner pushes to and pops from, and from which anyone grabs half.
//
//   head: next to be taken. Moved by compare-and-swap, by the owner (pop) and by thieves (grab).
//   tail: next free slot. Moved by the owner only.
//   Both grow without bound and are reduced modulo the capacity, so full and empty differ.
//
// Orderings:
//   [runq.publish] push stores the slot, then tail with release; a thief loads tail with acquire, then the slots.
//   [runq.reuse]   a thief reads the slots, then moves head with release; the owner loads head with acquire before it
//                  overwrites a slot. A thief that read a slot that was being reused fails its compare-and-swap.
//
// The slots are atomic because a thief may read one while the owner overwrites it; the value is then thrown away.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/delay.h"

namespace weft::gmp {

template <class T, std::uint32_t Capacity>
class run_queue {
  static_assert((Capacity & (Capacity - 1)) == 0 && Capacity >= 2);

 public:
  static constexpr std::uint32_t capacity = Capacity;

  // Anyone. Exact only for the owner.
  std::uint32_t size() const noexcept {
    const std::uint32_t h = head_.load(std::memory_order_acquire);
    const std::uint32_t t = tail_.load(std::memory_order_acquire);
    const std::uint32_t n = t - h;
    return n <= Capacity ? n : Capacity;  // the head that was read is old: the ring is in full motion
  }
  bool empty() const noexcept { return size() == 0; }

  // Owner. False if the ring is full.
  bool push(T* item) noexcept {
    const std::uint32_t t = tail_.load(std::memory_order_relaxed);
    if (t - head_.load(std::memory_order_acquire) >= Capacity) return false;  // [runq.reuse]
    slot(t).store(item, std::memory_order_relaxed);
    base::delay();
    tail_.store(t + 1, std::memory_order_release);  // [runq.publish]
    return true;
  }

  // Owner.
  T* pop() noexcept {
    std::uint32_t h = head_.load(std::memory_order_acquire);
    for (;;) {
      if (h == tail_.load(std::memory_order_relaxed)) return nullptr;
      T* item = slot(h).load(std::memory_order_relaxed);
      base::delay();
      if (head_.compare_exchange_weak(h, h + 1, std::memory_order_acq_rel, std::memory_order_acquire)) return item;
    }
  }

  // Owner, where nobody else can grab (there is only one P): the same without a locked instruction.
  T* pop_unshared() noexcept {
    const std::uint32_t h = head_.load(std::memory_order_relaxed);
    if (h == tail_.load(std::memory_order_relaxed)) return nullptr;
    T* item = slot(h).load(std::memory_order_relaxed);
    head_.store(h + 1, std::memory_order_release);
    return item;
  }

  // Owner: the item behind the one that pop() returns next, or a stale one; a hint for prefetching.
  T* peek_second() const noexcept { return slot(head_.load(std::memory_order_relaxed) + 1).load(std::memory_order_relaxed); }

  // Owner, ring full: takes the older half out into `out`. 0 if a thief was faster and there is room now.
  std::uint32_t take_half(T** out) noexcept {
    std::uint32_t h = head_.load(std::memory_order_acquire);
    const std::uint32_t n = (tail_.load(std::memory_order_relaxed) - h) / 2;
    if (n != Capacity / 2) return 0;
    for (std::uint32_t i = 0; i < n; ++i) out[i] = slot(h + i).load(std::memory_order_relaxed);
    base::delay();
    return head_.compare_exchange_strong(h, h + n, std::memory_order_acq_rel, std::memory_order_relaxed) ? n : 0;
  }

  // Anyone: moves half of this queue (rounded up) into `thief`, which the caller owns and which is empty, and returns
  // one of them; the others are in the thief's ring. `moved` counts all of them. Null if there was nothing.
  T* grab_half(run_queue& thief, std::uint32_t& moved) noexcept {
    const std::uint32_t t = thief.tail_.load(std::memory_order_relaxed);
    const std::uint32_t n = grab([&](std::uint32_t i, T* item) { thief.slot(t + i).store(item, std::memory_order_relaxed); });
    moved = n;
    if (n == 0) return nullptr;
    T* last = thief.slot(t + n - 1).load(std::memory_order_relaxed);
    if (n > 1) thief.tail_.store(t + n - 1, std::memory_order_release);  // [runq.publish]
    return last;
  }

  // Anyone: takes half of this queue (rounded up) out into `out`, which has room for half the capacity.
  std::uint32_t grab_half(T** out) noexcept {
    return grab([&](std::uint32_t i, T* item) { out[i] = item; });
  }

  // Owner: adds up to `n` items of `items`; returns how many fitted.
  std::uint32_t push_batch(T* const* items, std::uint32_t n) noexcept {
    const std::uint32_t t = tail_.load(std::memory_order_relaxed);
    const std::uint32_t room = Capacity - (t - head_.load(std::memory_order_acquire));  // [runq.reuse]
    if (n > room) n = room;
    for (std::uint32_t i = 0; i < n; ++i) slot(t + i).store(items[i], std::memory_order_relaxed);
    tail_.store(t + n, std::memory_order_release);  // [runq.publish]
    return n;
  }

  // Anyone, while nobody changes the queue.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::uint32_t t = tail_.load(std::memory_order_acquire);
    for (std::uint32_t i = head_.load(std::memory_order_acquire); i != t; ++i) visit(slot(i).load(std::memory_order_relaxed));
  }

 private:
  std::atomic<T*>& slot(std::uint32_t i) noexcept { return slots_[i & (Capacity - 1)]; }
  const std::atomic<T*>& slot(std::uint32_t i) const noexcept { return slots_[i & (Capacity - 1)]; }

  template <class Store>  // void(std::uint32_t index, T* item)
  std::uint32_t grab(Store&& store) noexcept {
    for (;;) {
      std::uint32_t h = head_.load(std::memory_order_acquire);
      const std::uint32_t t = tail_.load(std::memory_order_acquire);  // [runq.publish]
      std::uint32_t n = t - h;
      n -= n / 2;
      if (n == 0) return 0;
      if (n > Capacity / 2) continue;  // head and tail belong to different moments
      for (std::uint32_t i = 0; i < n; ++i) store(i, slot(h + i).load(std::memory_order_relaxed));
      base::delay();
      if (head_.compare_exchange_strong(h, h + n, std::memory_order_acq_rel, std::memory_order_relaxed)) return n;  // [runq.reuse]
    }
  }

  alignas(64) std::atomic<std::uint32_t> head_{0};  // thieves write here
  alignas(64) std::atomic<std::uint32_t> tail_{0};  // only the owner here and below
  alignas(64) std::atomic<T*> slots_[Capacity]{};
};

}  // namespace weft::gmp
