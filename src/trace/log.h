// Where events wait until the writer comes for them: each P has a log that only its owner writes to, and there is one
// for all who have no P, under a lock. Logs fill chunks; full ones go to the writer, which gives them back empty.
//
// A trace is on from begin_logging() to end_logging(). Both happen while the world is stopped, so a P's owner never
// sees its log come or go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/event.h"

namespace weft::trace {

// The log of those without a P.
inline constexpr std::int32_t outside = -1;

struct chunk {
  static constexpr std::uint32_t capacity = 2047;

  chunk* next;
  std::int32_t source;  // a P's number, or `outside`
  std::uint32_t count;
  std::uint64_t unused[2];
  event events[capacity];
};
static_assert(sizeof(chunk) == 64 * 1024);

class log {
 public:
  // One thread at a time: the P's owner, or who has taken the P and not passed it on yet.
  void add(const event& e) noexcept {
    if (has_room(1)) [[likely]]
      chunk_->events[chunk_->count++] = e;
  }
  // Into one chunk.
  void add(std::span<const event> group) noexcept {
    if (!has_room(group.size())) return;
    for (const event& e : group) chunk_->events[chunk_->count++] = e;
  }

 private:
  friend log* log_of(std::int32_t p) noexcept;
  friend void end_logging() noexcept;

  bool has_room(std::size_t n) noexcept {
    return (chunk_ != nullptr && chunk_->count + n <= chunk::capacity) || renew(n);
  }
  bool renew(std::size_t wanted) noexcept;
  void hand_over() noexcept;

  chunk* chunk_ = nullptr;
  std::int32_t source_ = outside;
  std::uint64_t lost_ = 0;  // and not told yet
};

// While the world is stopped. The log of a P; null if no trace is on.
log* log_of(std::int32_t p) noexcept;

// From anywhere; nothing happens if no trace is on. [trace.on] Who finds it on, and then looks at the clock, comes
// after the time that the caller of begin_logging() read before.
bool is_on() noexcept;
void add_outside(std::span<const event> group) noexcept;

void begin_logging() noexcept;
// All that was logged is with the writer.
void end_logging() noexcept;

// ---- the writer's side ----------------------------------------------------------------------------------------------

// What has been handed over, oldest first; null after end_logging(), when there is nothing left. Sleeps until one of
// the two.
chunk* wait_for_chunks() noexcept;
void give_back(chunk* c) noexcept;
// The writer is done: the memory goes back to the system, and the next trace may begin.
void free_chunks() noexcept;

}  // namespace weft::trace
