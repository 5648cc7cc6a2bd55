// Timers that are not due soon, in no order but that of their milliseconds. Not synchronized: heap.h puts the lock around it.
//
// A heap of 10^5 timers does not fit into the caches, and each that passes through it costs hundreds of nanoseconds. Here a timer
// costs some nanoseconds to put in and to take out, and only those of the next millisecond are ever in the heap (order.h).
//
// Time is cut into spans of 2^20 ns. The wheel has a place for each of the `spans` spans from begin_ on:
//
//   heads_[span % spans]   the first timer of that span, a list through links_
//   least_[span % spans]   no later than any of them; exact unless one was removed
//   occupied_              a bit for each place that is not empty
//   links_[slot]           a timer, by the slot that the heap has lent: its deadline and its neighbours. Slot 0 is nobody's
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "timer/mapped_array.h"

namespace weft::timers {

class wheel {
 public:
  static constexpr std::int64_t spans = 512;
  static constexpr int span_bits = 20;

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return links_.capacity(); }

  // No timer here is due earlier; the largest number if there is none.
  std::int64_t first_when() const noexcept { return first_; }

  // Whether there is a place for this deadline.
  bool takes(std::int64_t when) const noexcept {
    const std::int64_t span = when >> span_bits;
    return span >= begin_ && span - begin_ < spans;
  }

  // Empty: from now on it has places for what comes after the span of `when`.
  void begin_after(std::int64_t when) noexcept { begin_ = (when >> span_bits) + 1; }

  // takes(when).
  void insert(std::uint32_t slot, std::int64_t when) noexcept;
  void remove(std::uint32_t slot) noexcept;

  // Takes out all timers of the spans up to that of `now`, calling each(slot, when) for each of them.
  template <class Each>
  void give_up(std::int64_t now, Each each) noexcept {
    const std::int64_t last = now >> span_bits;
    for (std::int64_t span = next_occupied(begin_); size_ != 0 && span <= last; span = next_occupied(span + 1)) {
      std::uint32_t slot = heads_[place(span)];
      vacate(span);
      while (slot != 0) {
        const link& l = links_[slot];
        if (l.next != 0) __builtin_prefetch(&links_[l.next]);
        --size_;
        each(slot, l.when);
        slot = l.next;
      }
    }
    if (last >= begin_) begin_ = last + 1;
    find_first();
    shrink_if_empty();
  }

  // For tests.
  bool well_formed() const noexcept;

 private:
  struct link {
    std::int64_t when;
    std::uint32_t next;
    std::uint32_t previous;  // 0: the first
  };

  static constexpr std::size_t smallest = 1024;
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  static std::size_t place(std::int64_t span) noexcept { return static_cast<std::size_t>(span % spans); }
  bool is_occupied(std::size_t at) const noexcept { return (occupied_[at / 64] >> (at % 64) & 1) != 0; }
  void occupy(std::size_t at) noexcept { occupied_[at / 64] |= std::uint64_t{1} << (at % 64); }

  std::int64_t next_occupied(std::int64_t span) const noexcept;
  void vacate(std::int64_t span) noexcept;
  void find_first() noexcept;
  void make_room(std::uint32_t slot) noexcept;
  void shrink_if_empty() noexcept;

  std::int64_t begin_ = 0;      // all earlier spans are empty
  std::int64_t first_ = never;  // least_ of the first place that is not empty
  std::size_t size_ = 0;
  std::array<std::uint64_t, spans / 64> occupied_{};
  mapped_array<std::uint32_t> heads_;
  mapped_array<std::int64_t> least_;
  mapped_array<link> links_;
};

}  // namespace weft::timers
