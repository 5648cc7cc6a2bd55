// Timers in order: a heap with four children a node, keys in the array. Not synchronized: heap.h puts the lock around it.
//
//   entries_    the heap: {when, slot}
//   positions_  of each slot: where its entry is, 0 if it is lent; of a free slot: the next free one
//   nodes_      of each slot: the timer, which knows its slot. Slot 0 is nobody's: "in no heap"
//
// So ordering never touches the timers, which lie on as many stacks, a TLB miss each; a timer is touched when it is
// added and when it fires. Slots are lent to the wheel beside the heap (order.h): a timer that comes from there is not touched
// either.
//
// The root has index 3, so the four children of any entry are one cache line. The rest of the last, partly used line
// holds `absent` entries, so that the least of four needs no bounds and no branches.
//
// Removing leaves a hole, at most one, that the next insert fills. A program that creates and stops short timeouts
// among a million long ones would otherwise sift through all ten levels twice for each; with the hole it touches the
// top of the heap only. The hole keeps the key of the timer that was there, so the order holds for it as for any other
// entry; it is never the last entry, and every change other than an insert closes it first.
//
// Tried and rejected, by measurement with 10^3 to 10^6 timers:
//
//   Lazy deletion, as in Go (a stopped timer stays until it surfaces, or until a quarter are dead): with a million
//   timers create and stop is several times slower, one stop in 300,000 holds the lock for ten milliseconds, and the
//   memory of a stopped timer is not its owner's again at once.
//
//   The position in the timer instead of in positions_: as fast to create and stop, and less code, but firing one of
//   10^5 timers that lie 256 KiB apart takes twice as long, since each level of a sift writes to another cold page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "timer/mapped_array.h"
#include "timer/node.h"

namespace weft::timers {

class quad_heap {
 public:
  struct item {
    std::int64_t when;
    timer_node* node;
  };

  bool empty() const noexcept { return end_ == root; }
  std::size_t size() const noexcept { return end_ - root - (hole_ != 0 ? 1 : 0); }

  // The earliest deadline; 0 if there is none.
  std::int64_t first_when() const noexcept;

  void insert(timer_node& node, std::int64_t when) noexcept;
  void remove(timer_node& node) noexcept {
    take_out(node);
    release(node);
  }
  void rekey(timer_node& node, std::int64_t when) noexcept;

  // Removes without touching the timer, which therefore still counts as pending: insert() it again, or release() it.
  void take_out(timer_node& node) noexcept;
  item take_first() noexcept;  // not empty
  static void release(timer_node& node) noexcept { set_slot(node, 0); }

  // Moves all timers to `to`, calling each(node) for each of them. They count as pending all the time.
  template <class To, class Each>
  void move_to(To& to, Each each) noexcept {
    for (std::size_t i = root; i < end_; ++i) {
      if (i == hole_) continue;
      timer_node& node = *nodes_[entries_[i].slot];
      each(node);
      to.insert(node, entries_[i].when);
    }
    clear();
  }

  // A slot for a timer that is kept elsewhere for now; then either put_back(), which makes it one of the heap, or end_loan(),
  // which is as take_out().
  std::uint32_t lend_slot(timer_node& node) noexcept {
    const std::uint32_t slot = take_slot(node);
    positions_[slot] = 0;
    ++lent_;
    return slot;
  }
  bool is_lent(const timer_node& node) const noexcept { return positions_[slot_of(node)] == 0; }
  void put_back(std::uint32_t slot, std::int64_t when) noexcept {
    --lent_;
    __builtin_prefetch(nodes_[slot], 1);
    insert_slot(slot, when);
  }
  void end_loan(timer_node& node) noexcept;
  static std::uint32_t slot_of(const timer_node& node) noexcept { return node.slot_.load(std::memory_order_relaxed); }
  static void set_slot(timer_node& node, std::uint32_t slot) noexcept { node.slot_.store(slot, std::memory_order_relaxed); }

  // For tests: the order holds everywhere, and entries, slots and timers agree.
  bool well_formed() const noexcept;
  std::size_t capacity() const noexcept { return entries_.capacity(); }

 private:
  struct entry {
    std::int64_t when;
    std::uint32_t slot;
  };
  static_assert(sizeof(entry) == 16);

  static constexpr std::size_t root = 3;
  static constexpr std::size_t smallest = 1024;  // a page of positions
  static constexpr std::size_t largest = std::size_t{1} << 31;
  static constexpr entry absent{std::numeric_limits<std::int64_t>::max(), 0};

  static std::size_t parent(std::size_t i) noexcept { return i / 4 + 2; }
  static std::size_t children(std::size_t i) noexcept { return 4 * i - 8; }

  std::size_t least_of_four(std::size_t first) const noexcept;
  void prefetch_below(std::size_t first) const noexcept;
  void place(std::size_t i, entry e) noexcept;
  void sift_up(std::size_t i, entry e) noexcept;
  void sift_down(std::size_t i, entry e) noexcept;
  void sift(std::size_t i, entry e) noexcept;

  std::size_t append() noexcept;
  void drop_last() noexcept;
  void vacate(std::size_t i) noexcept;
  void close_hole() noexcept;

  void insert_slot(std::uint32_t slot, std::int64_t when) noexcept;
  std::uint32_t take_slot(timer_node& node) noexcept;
  void free_slot(std::uint32_t slot) noexcept;
  void renumber_slots(std::size_t capacity) noexcept;

  void grow() noexcept;
  void grow_slots() noexcept;
  void shrink_if_sparse() noexcept;
  void resize(std::size_t capacity) noexcept;
  void clear() noexcept;

  mapped_array<entry> entries_;
  mapped_array<std::uint32_t> positions_;
  mapped_array<timer_node*> nodes_;
  std::size_t end_ = root;        // one past the last entry
  std::size_t hole_ = 0;          // 0: none
  std::uint32_t slots_end_ = 1;   // one past the last slot that was ever used
  std::uint32_t free_slots_ = 0;  // list through positions_
  std::size_t lent_ = 0;
};

}  // namespace weft::timers
