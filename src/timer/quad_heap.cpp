#include "timer/quad_heap.h"

#include "base/fatal.h"

namespace weft::timers {

std::int64_t quad_heap::first_when() const noexcept {
  if (empty()) return 0;
  return hole_ == root ? entries_[least_of_four(children(root))].when : entries_[root].when;
}

[[gnu::flatten]] void quad_heap::insert(timer_node& node, std::int64_t when) noexcept { insert_slot(take_slot(node), when); }

[[gnu::flatten]] void quad_heap::insert_slot(std::uint32_t slot, std::int64_t when) noexcept {
  if (hole_ != 0) {
    const std::size_t i = hole_;
    hole_ = 0;
    sift(i, {when, slot});
  } else {
    sift_up(append(), {when, slot});
  }
}

void quad_heap::end_loan(timer_node& node) noexcept {
  --lent_;
  free_slot(slot_of(node));
}

[[gnu::flatten]] void quad_heap::take_out(timer_node& node) noexcept {
  close_hole();
  shrink_if_sparse();
  const std::uint32_t slot = slot_of(node);
  vacate(positions_[slot]);
  free_slot(slot);
}

void quad_heap::rekey(timer_node& node, std::int64_t when) noexcept {
  close_hole();
  const std::uint32_t slot = slot_of(node);
  sift(positions_[slot], {when, slot});
}

[[gnu::flatten]] quad_heap::item quad_heap::take_first() noexcept {
  close_hole();
  shrink_if_sparse();
  const entry e = entries_[root];
  timer_node* node = nodes_[e.slot];
  __builtin_prefetch(node);
  vacate(root);
  free_slot(e.slot);
  return {e.when, node};
}

// ---- sifting -------------------------------------------------------------------------------------------------------

// Comparisons whose outcome nobody can predict: sums instead of branches.
std::size_t quad_heap::least_of_four(std::size_t first) const noexcept {
  const entry* e = &entries_[first];
  const std::size_t a = e[1].when < e[0].when ? 1 : 0;
  const std::size_t b = 2 + (e[3].when < e[2].when ? 1 : 0);
  const std::size_t b_wins = e[b].when < e[a].when ? 1 : 0;
  return first + a + (b - a) * b_wins;
}

// Four siblings, of which the first is given, have 16 children in four lines: ask for all of them before it is known
// which one is needed.
void quad_heap::prefetch_below(std::size_t first) const noexcept {
  const std::size_t below = children(first);
  if (below >= end_) return;
  for (std::size_t line = 0; line < 4; ++line) __builtin_prefetch(&entries_[below + 4 * line]);
}

void quad_heap::place(std::size_t i, entry e) noexcept {
  entries_[i] = e;
  positions_[e.slot] = static_cast<std::uint32_t>(i);
}

void quad_heap::sift_up(std::size_t i, entry e) noexcept {
  while (i != root && e.when < entries_[parent(i)].when) {
    place(i, entries_[parent(i)]);
    i = parent(i);
  }
  place(i, e);
}

void quad_heap::sift_down(std::size_t i, entry e) noexcept {
  for (std::size_t c = children(i); c < end_; c = children(i)) {
    prefetch_below(c);
    const std::size_t least = least_of_four(c);
    if (e.when <= entries_[least].when) break;
    place(i, entries_[least]);
    i = least;
  }
  place(i, e);
}

void quad_heap::sift(std::size_t i, entry e) noexcept {
  if (i != root && e.when < entries_[parent(i)].when) {
    sift_up(i, e);
  } else {
    sift_down(i, e);
  }
}

// ---- entries come and go -------------------------------------------------------------------------------------------

std::size_t quad_heap::append() noexcept {
  if (end_ >= entries_.capacity()) grow();
  if (end_ % 4 == 0) entries_[end_ + 1] = entries_[end_ + 2] = entries_[end_ + 3] = absent;
  return end_++;
}

void quad_heap::drop_last() noexcept { entries_[--end_] = absent; }

void quad_heap::vacate(std::size_t i) noexcept {
  if (i == end_ - 1) {
    drop_last();
  } else {
    hole_ = i;
    entries_[i].slot = 0;
  }
}

void quad_heap::close_hole() noexcept {
  if (hole_ == 0) return;
  const std::size_t i = hole_;
  hole_ = 0;
  const entry last = entries_[end_ - 1];
  drop_last();
  sift(i, last);
}

// ---- slots ---------------------------------------------------------------------------------------------------------

std::uint32_t quad_heap::take_slot(timer_node& node) noexcept {
  std::uint32_t slot = free_slots_;
  if (slot != 0) {
    free_slots_ = positions_[slot];
  } else {
    if (slots_end_ >= nodes_.capacity()) grow_slots();
    slot = slots_end_++;
  }
  nodes_[slot] = &node;
  set_slot(node, slot);
  return slot;
}

void quad_heap::free_slot(std::uint32_t slot) noexcept {
  positions_[slot] = free_slots_;
  free_slots_ = slot;
}

// Gives the slots 1, 2, … to the entries in their order, in a table of the given capacity. No hole.
void quad_heap::renumber_slots(std::size_t capacity) noexcept {
  mapped_array<timer_node*> nodes;
  nodes.resize(capacity);
  slots_end_ = 1;
  free_slots_ = 0;
  for (std::size_t i = root; i < end_; ++i) {
    timer_node* node = nodes_[entries_[i].slot];
    const std::uint32_t slot = slots_end_++;
    nodes[slot] = node;
    set_slot(*node, slot);
    entries_[i].slot = slot;
    positions_[slot] = static_cast<std::uint32_t>(i);
  }
  nodes_.swap(nodes);
}

// ---- memory --------------------------------------------------------------------------------------------------------

namespace {

std::size_t larger(std::size_t capacity, std::size_t smallest, std::size_t largest) noexcept {
  if (capacity >= largest) base::fatal("more than ", std::uint64_t{largest}, " timers on one P");
  return capacity == 0 ? smallest : 2 * capacity;
}

}  // namespace

void quad_heap::grow() noexcept { entries_.resize(larger(entries_.capacity(), smallest, largest)); }

void quad_heap::grow_slots() noexcept {
  const std::size_t capacity = larger(nodes_.capacity(), smallest, largest);
  positions_.resize(capacity);
  nodes_.resize(capacity);
}

// A heap that was large gives memory back, an eighth being left and half of that in use, so that it neither does so
// often nor has many timers to renumber when it does. Not while slots are lent: their numbers are elsewhere too. No hole.
void quad_heap::shrink_if_sparse() noexcept {
  const std::size_t capacity = nodes_.capacity();
  if (end_ >= capacity / 16 || capacity < 8 * smallest || lent_ != 0) return;
  if (slots_end_ > capacity / 8) renumber_slots(capacity / 8);
  resize(capacity / 8);
}

void quad_heap::resize(std::size_t capacity) noexcept {
  entries_.resize(capacity);
  positions_.resize(capacity);
  nodes_.resize(capacity);
}

void quad_heap::clear() noexcept {
  resize(0);
  end_ = root;
  hole_ = 0;
  slots_end_ = 1;
  free_slots_ = 0;
  lent_ = 0;
}

bool quad_heap::well_formed() const noexcept {
  if (hole_ != 0 && (hole_ < root || hole_ + 1 >= end_ || entries_[hole_].slot != 0)) return false;
  for (std::size_t i = root; i < end_; ++i) {
    if (i != root && entries_[i].when < entries_[parent(i)].when) return false;
    if (i == hole_) continue;
    const std::uint32_t slot = entries_[i].slot;
    if (slot == 0 || slot >= slots_end_ || positions_[slot] != i) return false;
    if (nodes_[slot] == nullptr || slot_of(*nodes_[slot]) != slot) return false;
  }
  for (std::size_t i = end_ > root ? end_ : root + 1; i % 4 != 0; ++i) {
    if (entries_[i].when != absent.when) return false;
  }
  std::size_t free = 0;
  for (std::uint32_t slot = free_slots_; slot != 0; slot = positions_[slot]) ++free;
  return free + size() + lent_ + 1 == slots_end_;
}

}  // namespace weft::timers
