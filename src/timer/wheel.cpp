#include "timer/wheel.h"

#include <bit>

namespace weft::timers {

void wheel::insert(std::uint32_t slot, std::int64_t when) noexcept {
  if (slot >= links_.capacity()) make_room(slot);
  const std::size_t at = place(when >> span_bits);
  const std::uint32_t head = heads_[at];
  links_[slot] = {when, head, 0};
  if (head != 0) links_[head].previous = slot;
  heads_[at] = slot;
  if (head == 0 || when < least_[at]) least_[at] = when;
  if (head == 0) occupy(at);
  if (when < first_) first_ = when;
  ++size_;
}

void wheel::remove(std::uint32_t slot) noexcept {
  const link l = links_[slot];
  const std::int64_t span = l.when >> span_bits;
  if (l.next != 0) links_[l.next].previous = l.previous;
  (l.previous != 0 ? links_[l.previous].next : heads_[place(span)]) = l.next;
  --size_;
  if (heads_[place(span)] != 0) return;
  vacate(span);
  find_first();
  shrink_if_empty();
}

// The first span from `span` on that is not empty. There is one, or the result is later than anything.
std::int64_t wheel::next_occupied(std::int64_t span) const noexcept {
  for (std::int64_t i = 0; i < spans;) {
    const std::size_t at = place(span + i);
    const std::uint64_t rest = occupied_[at / 64] >> (at % 64);
    if (rest != 0) return span + i + std::countr_zero(rest);
    i += 64 - static_cast<std::int64_t>(at % 64);
  }
  return never;
}

void wheel::vacate(std::int64_t span) noexcept {
  const std::size_t at = place(span);
  heads_[at] = 0;
  occupied_[at / 64] &= ~(std::uint64_t{1} << (at % 64));
}

void wheel::find_first() noexcept { first_ = size_ == 0 ? never : least_[place(next_occupied(begin_))]; }

// ---- memory --------------------------------------------------------------------------------------------------------

void wheel::make_room(std::uint32_t slot) noexcept {
  std::size_t capacity = links_.capacity();
  if (capacity == 0) {
    heads_.resize(2 * spans);  // whole pages
    least_.resize(spans);
    capacity = smallest;
  }
  while (slot >= capacity) capacity *= 2;
  links_.resize(capacity);
}

// A wheel that was large gives memory back when it is empty.
void wheel::shrink_if_empty() noexcept {
  if (size_ == 0 && links_.capacity() >= 8 * smallest) links_.resize(smallest);
}

bool wheel::well_formed() const noexcept {
  if (heads_.capacity() == 0) return size_ == 0;
  std::size_t found = 0;
  std::int64_t first = never;
  for (std::int64_t span = begin_; span < begin_ + spans; ++span) {
    const std::size_t at = place(span);
    if (is_occupied(at) != (heads_[at] != 0)) return false;
    if (is_occupied(at) && first == never) first = least_[at];
    std::uint32_t previous = 0;
    for (std::uint32_t slot = heads_[at]; slot != 0; previous = slot, slot = links_[slot].next) {
      const link& l = links_[slot];
      if (l.when >> span_bits != span || l.when < least_[at] || l.previous != previous) return false;
      ++found;
    }
  }
  return found == size_ && first == first_;
}

}  // namespace weft::timers
