// Stacks: reserved in arenas, guarded, cached while warm, given back to the system when idle. A goroutine object lives at
// the top of each. From low to high addresses:
//
//   guard page | usable: stack_size bytes and some more | goroutine | colour
//
// The colour, 0 to 15 cache lines, keeps the hot tops of many stacks from falling into the same few cache sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sched/scheduler.h"

namespace weft::sched {

// Sizes are rounded up to a power of two, from 16 KiB to 1 GiB.
inline constexpr std::size_t min_stack = 16 * 1024;
inline constexpr std::size_t max_stack = std::size_t{1} << 30;
inline constexpr std::size_t default_stack = 256 * 1024;
inline constexpr int stack_classes = 17;

int stack_class(std::size_t bytes) noexcept;

// A dead goroutine with a stack of the default size.
goroutine* take_stack(processor* p) noexcept;
// One of another size, from the shared pools.
goroutine* take_stack_of(std::size_t bytes) noexcept;
// Back to the P's cache or the shared pools. The stack is not in use any more.
void put_stack(processor* p, goroutine* g) noexcept;
// The P goes away: its cached stacks to the shared pools.
void flush_stacks(processor* p) noexcept;

// Only while the world is stopped, or before it starts.
void set_default_stack_size(std::size_t bytes) noexcept;
std::size_t default_stack_size() noexcept;
// Whether any goroutine without a wish of its own may use this one's stack.
bool has_default_stack(const goroutine* g) noexcept;

// WEFTDEBUG=guard=mprotect, before the first stack.
void force_mprotect_guards() noexcept;

// sysmon: gives the pages of stacks that lay unused in the shared pools since the last call but one back to the system.
// Returns how many stacks.
std::size_t scavenge_stacks() noexcept;

// The goroutine whose guard page holds `address`, or null. From a signal handler.
goroutine* guard_hit(const void* address) noexcept;

// Every stack's goroutine, also the dead ones, whether the world stands or not: only what is atomic may be looked at
// unless it does. A few thousand at a time under the lock of the pools, so `visit` neither blocks nor takes memory from malloc.
void for_each_goroutine(void (*visit)(const goroutine&, void*), void* argument) noexcept;

template <class Visit>
void for_each_goroutine(Visit&& visit) noexcept {
  for_each_goroutine([](const goroutine& g, void* v) { (*static_cast<std::remove_reference_t<Visit>*>(v))(g); }, &visit);
}

struct stack_stats {
  std::uint64_t total;         // ever carved
  std::uint64_t pooled;        // in the shared pools, warm or cold
  std::uint64_t returned;      // given back to the system, all time
};
stack_stats read_stack_stats() noexcept;

}  // namespace weft::sched
