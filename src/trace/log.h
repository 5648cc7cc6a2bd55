// Where events wait until somebody comes for them: each P has a log that only its owner writes to, and there is one for
// all who have no P, under a lock. Logs fill chunks. Full ones go to the writer, which gives them back empty; or, in a
// recording, they are kept until there are too many of them, and then the oldest is used again.
//
// A trace is on from begin_logging() or begin_recording() to end_logging(). All happen while the world is stopped, so a
// P's owner never sees its log come or go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/event.h"

namespace weft::trace {

// The log of those without a P.
inline constexpr std::int32_t outside = -1;
// Of what is found when a recording is taken.
inline constexpr std::int32_t census = -2;

struct chunk {
  static constexpr std::uint32_t capacity = 2047;

  chunk* next;
  std::int32_t source;  // a P's number, `outside` or `census`
  std::uint32_t count;
  std::uint64_t unused[2];
  event events[capacity];
};
static_assert(sizeof(chunk) == 64 * 1024);

// An event and what the ones after it say about it.
using group = std::span<const event>;

// Calls use(group) for each in the chunk.
template <class Use>
void for_each_group(const chunk& c, Use use) {
  for (std::uint32_t i = 0; i < c.count;) {
    std::uint32_t end = i + 1;
    while (end < c.count && is_detail(c.events[end])) ++end;
    use(group(c.events + i, end - i));
    i = end;
  }
}

class log {
 public:
  explicit constexpr log(std::int32_t source) noexcept : source_(source) {}

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
  friend void hand_over_all() noexcept;

  bool has_room(std::size_t n) noexcept {
    return (chunk_ != nullptr && chunk_->count + n <= chunk::capacity) || renew(n);
  }
  bool renew(std::size_t wanted) noexcept;
  void hand_over() noexcept;

  chunk* chunk_ = nullptr;
  const std::int32_t source_;
  std::uint64_t lost_ = 0;  // and not told yet
};

// While the world is stopped. The log of a P; null if no trace is on.
log* log_of(std::int32_t p) noexcept;

// From anywhere; nothing happens if no trace is on. [trace.on] Who finds it on, and then looks at the clock, comes
// after the time that the caller of begin_logging() read before.
bool is_on() noexcept;
void add_outside(std::span<const event> group) noexcept;

void begin_logging() noexcept;
// All that was logged is with the writer, or with free_chunks().
void end_logging() noexcept;

// ---- a recording ---------------------------------------------------------------------------------------------------

// As begin_logging(), for no writer: the last `chunks` that were filled are kept.
void begin_recording(std::uint32_t chunks) noexcept;
bool is_recording() noexcept;

// While the world is stopped: what there is now, for the one who takes the recording.
void add_to_census(std::span<const event> group) noexcept;

struct recording {
  chunk* first = nullptr;          // oldest first, linked by `next`; those of one log in their order
  std::int64_t complete_from = 0;  // of what happened before, some is not there any more
};
// While the world is stopped, after the census. What happens next goes into other chunks.
recording take_recording() noexcept;
// Its chunks count as the oldest again; without the census.
void put_back(const recording& r) noexcept;

// ---- the writer's side ----------------------------------------------------------------------------------------------

// What has been handed over, oldest first; null after end_logging(), when there is nothing left. Sleeps until one of
// the two.
chunk* wait_for_chunks() noexcept;
void give_back(chunk* c) noexcept;
// The writer is done: the memory goes back to the system, and the next trace may begin.
void free_chunks() noexcept;

}  // namespace weft::trace
