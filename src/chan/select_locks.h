// All channels of a select, locked at once: in the order of their addresses, so that two selects cannot wait for each other.
#pragma once

#include <weft/detail/select_core.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "chan/channel.h"

namespace weft::chans {

using detail::select_plan;
using detail::select_slot;

inline channel* nth_channel(select_slot* slots, std::uint32_t i) noexcept {
  return static_cast<channel*>(slots[slots[i].by_address].channel);
}

inline std::uint32_t count_channels(const select_slot* slots, std::size_t n) noexcept {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += slots[i].channel != nullptr;
  return count;
}

inline bool is_before(const select_slot& a, const select_slot& b) noexcept { return std::less<>()(a.channel, b.channel); }

inline void order_few(select_slot* slots, std::size_t n) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (slots[i].channel == nullptr) continue;
    std::uint32_t at = count++;
    for (; at > 0 && is_before(slots[i], slots[slots[at - 1].by_address]); --at)
      slots[at].by_address = slots[at - 1].by_address;
    slots[at].by_address = i;
  }
}

// A heap sort of its own is shorter than the iterator that std::sort would need for indices that lie in the slots.
inline void sift_down(select_slot* slots, std::uint32_t root, std::uint32_t size) noexcept {
  const auto before = [slots](std::uint32_t a, std::uint32_t b) {
    return is_before(slots[slots[a].by_address], slots[slots[b].by_address]);
  };
  for (std::uint32_t child; (child = 2 * root + 1) < size; root = child) {
    if (child + 1 < size && before(child, child + 1)) ++child;
    if (!before(root, child)) return;
    std::swap(slots[root].by_address, slots[child].by_address);
  }
}

inline void order_many(select_slot* slots, std::size_t n) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (slots[i].channel != nullptr) slots[count++].by_address = i;
  }
  for (std::uint32_t i = count / 2; i-- > 0;) sift_down(slots, i, count);
  for (std::uint32_t size = count; size-- > 1;) {
    std::swap(slots[0].by_address, slots[size].by_address);
    sift_down(slots, 0, size);
  }
}

// Fills in by_address, and returns how many slots have a channel.
inline std::uint32_t order_channels(select_slot* slots, std::size_t n, select_plan& plan) noexcept {
  const std::uint32_t count = count_channels(slots, n);
  if (plan.ordered != count) n <= 16 ? order_few(slots, n) : order_many(slots, n);
  plan.ordered = count;
  return count;
}

inline void lock_all(select_slot* slots, std::uint32_t channels, sched::machine* m) noexcept {
  channel* previous = nullptr;
  for (std::uint32_t i = 0; i < channels; ++i) {
    channel* c = nth_channel(slots, i);
    if (previous == nullptr) {
      c->lock.lock(m);
    } else if (c != previous) {
      c->lock.lock_another(m);
    }
    previous = c;
  }
}

// Releases all but `kept`. The frame is not read after the last release, see the head of select.cpp.
inline void unlock_all(select_slot* slots, std::uint32_t channels, const channel* kept = nullptr) noexcept {
  if (channels == 0) return;
  channel* c = nth_channel(slots, 0);
  for (std::uint32_t i = 1; i < channels; ++i) {
    channel* next = nth_channel(slots, i);
    if (next == c) continue;
    if (c != kept) c->lock.unlock_another();
    c = next;
  }
  if (kept == nullptr) {
    c->lock.unlock();
  } else if (c != kept) {
    c->lock.unlock_another();
  }
}

}  // namespace weft::chans
