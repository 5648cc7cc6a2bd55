// A P's queue of runnable goroutines: a ring that its owner pushes to and pops from, and from which anyone grabs half.
//
//   head: next to be taken (lower half). Moved by compare-and-swap, by the owner (pop) and by thieves (grab). The upper
//         half counts how often the owner has taken back what it pushed last (take_back).
//   tail: next free slot. Moved by the owner only, back only by take_back.
//   Both grow without bound and are reduced modulo the capacity, so full and empty differ.
//
// Orderings:
//   [runq.publish] push stores the slot, then tail with release; a thief loads tail with acquire, then the slots.
//   [runq.reuse]   a thief reads the slots, then moves head with release; the owner loads head with acquire before it
//                  overwrites a slot. A thief that read a slot that was being reused fails its compare-and-swap.
//   [runq.back]    take_back moves tail back, then changes head's upper half with release. A thief that has seen the head
//                  from before fails its compare-and-swap; one that sees the new head, with acquire, sees the new tail.
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
    const std::uint32_t h = index(head_.load(std::memory_order_acquire));
    const std::uint32_t t = tail_.load(std::memory_order_acquire);
    const std::uint32_t n = t - h;
    if (n <= Capacity) return n;
    return is_behind(t, h) ? 0 : Capacity;  // the head that was read is old: the ring is in full motion
  }
  bool empty() const noexcept { return size() == 0; }
  bool empty_to_owner() const noexcept {
    return index(head_.load(std::memory_order_acquire)) == tail_.load(std::memory_order_relaxed);
  }

  // Owner. False if the ring is full.
  bool push(T* item) noexcept {
    const std::uint32_t t = tail_.load(std::memory_order_relaxed);
    if (t - index(head_.load(std::memory_order_acquire)) >= Capacity) return false;  // [runq.reuse]
    slot(t).store(item, std::memory_order_relaxed);
    base::delay();
    tail_.store(t + 1, std::memory_order_release);  // [runq.publish]
    return true;
  }

  // Owner.
  T* pop() noexcept {
    std::uint64_t h = head_.load(std::memory_order_acquire);
    for (;;) {
      if (index(h) == tail_.load(std::memory_order_relaxed)) return nullptr;
      T* item = slot(index(h)).load(std::memory_order_relaxed);
      base::delay();
      if (head_.compare_exchange_weak(h, h + 1, std::memory_order_acq_rel, std::memory_order_acquire)) return item;
    }
  }

  // Owner, where nobody else can grab (there is only one P): the same without a locked instruction.
  T* pop_unshared() noexcept {
    const std::uint64_t h = head_.load(std::memory_order_relaxed);
    if (index(h) == tail_.load(std::memory_order_relaxed)) return nullptr;
    T* item = slot(index(h)).load(std::memory_order_relaxed);
    head_.store(h + 1, std::memory_order_release);
    return item;
  }

  // Owner: what it pushed last, or a stale item if the ring is empty.
  T* peek_last() const noexcept { return slot(tail_.load(std::memory_order_relaxed) - 1).load(std::memory_order_relaxed); }

  // Owner: takes back what it pushed last, the item of peek_last(). False if somebody else has it.
  bool take_back() noexcept {
    std::uint64_t h = head_.load(std::memory_order_acquire);
    const std::uint32_t t = tail_.load(std::memory_order_relaxed) - 1;
    if (index(h) == t + 1) return false;
    tail_.store(t, std::memory_order_relaxed);
    base::delay();
    do {
      if (index(h) == t + 1) {  // a thief was faster
        tail_.store(t + 1, std::memory_order_relaxed);
        return false;
      }
    } while (!head_.compare_exchange_weak(h, h + taken_back, std::memory_order_acq_rel, std::memory_order_acquire));  // [runq.back]
    return true;
  }

  // Owner, where nobody else can grab.
  bool take_back_unshared() noexcept {
    const std::uint32_t t = tail_.load(std::memory_order_relaxed);
    if (index(head_.load(std::memory_order_relaxed)) == t) return false;
    tail_.store(t - 1, std::memory_order_relaxed);
    return true;
  }

  // Owner: the item behind the one that pop() returns next, or a stale one; a hint for prefetching.
  T* peek_second() const noexcept { return slot(index(head_.load(std::memory_order_relaxed)) + 1).load(std::memory_order_relaxed); }

  // Owner, ring full: takes the older half out into `out`. 0 if a thief was faster and there is room now.
  std::uint32_t take_half(T** out) noexcept {
    std::uint64_t h = head_.load(std::memory_order_acquire);
    const std::uint32_t n = (tail_.load(std::memory_order_relaxed) - index(h)) / 2;
    if (n != Capacity / 2) return 0;
    for (std::uint32_t i = 0; i < n; ++i) out[i] = slot(index(h) + i).load(std::memory_order_relaxed);
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
    const std::uint32_t room = Capacity - (t - index(head_.load(std::memory_order_acquire)));  // [runq.reuse]
    if (n > room) n = room;
    for (std::uint32_t i = 0; i < n; ++i) slot(t + i).store(items[i], std::memory_order_relaxed);
    tail_.store(t + n, std::memory_order_release);  // [runq.publish]
    return n;
  }

  // Anyone, while nobody changes the queue.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::uint32_t t = tail_.load(std::memory_order_acquire);
    for (std::uint32_t i = index(head_.load(std::memory_order_acquire)); i != t; ++i) visit(slot(i).load(std::memory_order_relaxed));
  }

  // For code in assembly.
  static constexpr std::size_t head_offset() noexcept { return offsetof(run_queue, head_); }
  static constexpr std::size_t tail_offset() noexcept { return offsetof(run_queue, tail_); }
  static constexpr std::size_t slots_offset() noexcept { return offsetof(run_queue, slots_); }

 private:
  static constexpr std::uint64_t taken_back = std::uint64_t{1} << 32;

  // An index that overflows counts one up in the upper half: as good as any other change of it.
  static std::uint32_t index(std::uint64_t head) noexcept { return static_cast<std::uint32_t>(head); }
  // The owner is about to find out that it cannot take back what a thief has.
  static bool is_behind(std::uint32_t tail, std::uint32_t head) noexcept { return tail + 1 == head; }

  std::atomic<T*>& slot(std::uint32_t i) noexcept { return slots_[i & (Capacity - 1)]; }
  const std::atomic<T*>& slot(std::uint32_t i) const noexcept { return slots_[i & (Capacity - 1)]; }

  template <class Store>  // void(std::uint32_t index, T* item)
  std::uint32_t grab(Store&& store) noexcept {
    for (;;) {
      std::uint64_t h = head_.load(std::memory_order_acquire);        // [runq.back]
      const std::uint32_t t = tail_.load(std::memory_order_acquire);  // [runq.publish]
      std::uint32_t n = t - index(h);
      n -= n / 2;
      if (n == 0 || is_behind(t, index(h))) return 0;
      if (n > Capacity / 2) continue;  // head and tail belong to different moments
      for (std::uint32_t i = 0; i < n; ++i) store(i, slot(index(h) + i).load(std::memory_order_relaxed));
      base::delay();
      if (head_.compare_exchange_strong(h, h + n, std::memory_order_acq_rel, std::memory_order_relaxed)) return n;  // [runq.reuse]
    }
  }

  alignas(64) std::atomic<std::uint64_t> head_{0};  // thieves write here
  alignas(64) std::atomic<std::uint32_t> tail_{0};  // only the owner here and below
  alignas(64) std::atomic<T*> slots_[Capacity]{};
};

}  // namespace weft::gmp
