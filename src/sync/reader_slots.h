// Where the readers of a crowded shared_mutex count themselves: one counter a P, so that no two readers need the same
// cache line. (Plain threads use the lock's word.)
//
// A slot is open or closed. A reader that enters adds itself to the slot of its P; if that was closed, this means
// nothing (opening a slot sets it anew), and the reader turns to the lock's word, as if there were no slots. A reader
// that leaves takes itself out of the slot of the P that it is on by then, likewise. So a slot may count less than
// nothing, and only the sum of all slots and of the word's count says how many readers there are.
//
// Opening by a reader, who holds the lock: takes the guard and sets `spread` (both in the word), which keeps writers
// from taking the lock, because the word's count means nothing from now on; open(); lets go of the guard. Opening by a
// writer, who leaves the lock: takes the guard; open(); `spread` in place of `writer` and the guard. A reader that has
// entered an open slot and finds no `spread` leaves again and turns to the word: else it could be done and destroy the
// lock before the writer has left it.
//
// Closing, by a writer: `writer` in place of `spread`, unless somebody has the guard, who may be opening; `writer`
// holds back whoever finds a slot closed; close(); its result is added to the word. From then on the word's count is
// exact, whoever entered or left in between: each +1 and each -1 went to a slot before that was closed, or to the word.
// If readers are left, the writer waits for them as for others that have counted themselves in the word. Until the sum
// is in, the word's count can be below zero; that `writer` is set tells leaving readers to leave it at that.
//
//   [reader_slots.open]   release: what the writer did is visible to readers that enter (acquire)
//   [reader_slots.leave]  release: what a reader did happens before what the writer does that closes the slot (acquire)
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/delay.h"

namespace weft::detail {

class reader_slots {
 public:
  // At least so many.
  explicit reader_slots(std::size_t count) : mask_(std::bit_ceil(count) - 1), slots_(new slot[mask_ + 1]) {}

  // Both with the id of the P, or of one that it was just now: another's slot is as good, only slower.
  // True: the caller is counted, and may read if the word has `spread`.
  bool enter(std::int32_t p) noexcept {
    return (of(p).fetch_add(entry + one, std::memory_order_acquire) & closed) == 0;  // [reader_slots.open]
  }

  // True: the caller has left, and must not touch the lock again.
  bool leave(std::int32_t p) noexcept {
    return (of(p).fetch_sub(one, std::memory_order_release) & closed) == 0;  // [reader_slots.leave]
  }

  void open() noexcept {
    for (std::size_t i = 0; i <= mask_; ++i) {
      base::delay();
      slots_[i].value.store(0, std::memory_order_release);  // [reader_slots.open]
    }
  }

  // Returns how many are inside, less those who entered by the lock's word.
  std::int64_t close() noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i <= mask_; ++i) {
      base::delay();
      sum += slots_[i].value.exchange(closed, std::memory_order_acquire);  // [reader_slots.leave]
    }
    // The sum of the halves is right though each may have run over: there are less than 2^30 readers.
    const std::int64_t readers = static_cast<std::int32_t>(sum) / static_cast<std::int32_t>(one);
    entries_ = (sum - static_cast<std::uint64_t>(readers) * one) / entry;
    return readers;
  }

  // For the writer: how often somebody had entered when the slots were last closed, about.
  std::uint64_t entries() const noexcept { return entries_; }

  std::size_t count() const noexcept { return mask_ + 1; }

 private:
  // Bit 0: closed. The rest of the lower half: readers. The upper half: entries, which may run over.
  static constexpr std::uint64_t closed = 1, one = 2, entry = std::uint64_t{1} << 32;

  struct alignas(64) slot {
    std::atomic<std::uint64_t> value{closed};
  };

  std::atomic<std::uint64_t>& of(std::int32_t p) noexcept { return slots_[static_cast<std::size_t>(p) & mask_].value; }

  std::size_t mask_;
  std::uint64_t entries_ = 0;
  std::unique_ptr<slot[]> slots_;
};

}  // namespace weft::detail
