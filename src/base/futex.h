// The two futex calls everything that sleeps is made of. They touch no errno of the caller: a goroutine's errno must
// not change because the runtime slept under it.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::base {

using futex_word = std::atomic<std::uint32_t>;

// Sleeps this thread while `word` holds `expected`. May return spuriously: callers loop.
void futex_wait(futex_word& word, std::uint32_t expected) noexcept;

// As above, until an absolute CLOCK_MONOTONIC time in nanoseconds. False when that time has come.
bool futex_wait_until(futex_word& word, std::uint32_t expected, std::int64_t deadline_ns) noexcept;

// Wakes up to `count` sleepers. The word may already be unmapped: then nothing happens.
void futex_wake(futex_word& word, int count) noexcept;

}  // namespace weft::base
