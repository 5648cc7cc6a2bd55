// Where events wait until somebody comes for them: each P has a log that only its owner writes to, and there is one for
// all who have no P, under a lock. Logs fill chunks. Full ones go to the writer, which gives them back empty, and now and
// then also reads what is in those that are not full yet; or, in a recording, full ones are kept until there are too many
// of them, and then the oldest is used again.
//
// A trace is on from begin_logging() or begin_recording() to end_logging(). All happen while the world is stopped, so a
// P's owner never sees its log come or go.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
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
  std::uint32_t written;  // so many of them are in the file already; the writer's
  std::uint32_t unused[3];
  event events[capacity];

  // The writer looks on while the owner of the log fills the chunk. [trace.count] The events before are there.
  void publish(std::uint32_t n) noexcept { std::atomic_ref(count).store(n, std::memory_order_release); }
  std::uint32_t published() noexcept { return std::atomic_ref(count).load(std::memory_order_acquire); }
};
static_assert(sizeof(chunk) == 64 * 1024);

// An event and what the ones after it say about it.
using group = std::span<const event>;

// Calls use(group) for each.
template <class Use>
void for_each_group(std::span<const event> events, Use use) {
  for (std::size_t i = 0; i < events.size();) {
    std::size_t end = i + 1;
    while (end < events.size() && is_detail(events[end])) ++end;
    use(events.subspan(i, end - i));
    i = end;
  }
}
template <class Use>
void for_each_group(const chunk& c, Use use) {
  for_each_group(std::span(c.events, c.count), use);
}

struct unfinished;

class log {
 public:
  explicit constexpr log(std::int32_t source) noexcept : source_(source) {}

  // One thread at a time: the P's owner, or who has taken the P and not passed it on yet.
  void add(const event& e) noexcept {
    if (has_room(1)) [[likely]]
      append(e);
  }
  // Into one chunk, where nobody sees a part of them.
  void add(std::span<const event> several) noexcept {
    if (!has_room(several.size())) return;
    std::copy(several.begin(), several.end(), chunk_->events + chunk_->count);
    chunk_->publish(chunk_->count + static_cast<std::uint32_t>(several.size()));
  }

 private:
  friend log* log_of(std::int32_t p) noexcept;
  friend void hand_over_all() noexcept;
  friend unfinished unfinished_of(const log& l) noexcept;

  void append(const event& e) noexcept {
    chunk_->events[chunk_->count] = e;
    chunk_->publish(chunk_->count + 1);
  }
  bool has_room(std::size_t n) noexcept {
    return (chunk_ != nullptr && chunk_->count + n <= chunk::capacity) || renew(n);
  }
  bool renew(std::size_t wanted) noexcept;
  bool replace_chunk() noexcept;
  void hand_over() noexcept;

  chunk* chunk_ = nullptr;  // changes under the lock of what has been handed over, where the writer reads it
  const std::int32_t source_;
  std::uint64_t lost_ = 0;  // and not told yet
};

// While the world is stopped. The log of a P; null if no trace is on.
log* log_of(std::int32_t p) noexcept;

// From anywhere; nothing happens if no trace is on. [trace.on] Who finds it on, and then looks at the clock, comes
// after the time that the caller of begin_logging() read before.
bool is_on() noexcept;
void add_outside(std::span<const event> several) noexcept;

void begin_logging() noexcept;
// All that was logged is with the writer, or with free_chunks().
void end_logging() noexcept;

// ---- a recording ---------------------------------------------------------------------------------------------------

// As begin_logging(), for no writer: the last `chunks` that were filled are kept.
void begin_recording(std::uint32_t chunks) noexcept;
bool is_recording() noexcept;

// While the world is stopped: what there is now, for the one who takes the recording.
void add_to_census(std::span<const event> several) noexcept;

struct recording {
  chunk* first = nullptr;          // oldest first, linked by `next`; those of one log in their order
  std::int64_t complete_from = 0;  // of what happened before, some is not there any more
};
// While the world is stopped, after the census. What happens next goes into other chunks.
recording take_recording() noexcept;
// Its chunks count as the oldest again; without the census.
void put_back(const recording& r) noexcept;

// ---- the writer's side ----------------------------------------------------------------------------------------------

// A number that changes whenever there is something new for the writer: it reads the number, looks, and sleeps until the
// number is another one, or until then.
std::uint32_t news() noexcept;
void wait_for_news(std::uint32_t seen, std::int64_t until_ns) noexcept;
// From anywhere, also from a signal handler.
void wake_writer() noexcept;

// Nothing is logged any more, and all is handed over.
bool has_ended() noexcept;

// What has been handed over, oldest first, linked by `next`; null: nothing.
chunk* take_full() noexcept;

// What a log is filling, and how many events it has. The chunk stays what it is until the writer has taken it as a full one
// and given it back.
struct unfinished {
  chunk* what = nullptr;
  std::uint32_t count = 0;
};
inline constexpr std::int32_t max_logs = 1024;  // of Ps
using all_unfinished = std::array<unfinished, max_logs + 1>;

struct lot {
  chunk* full = nullptr;
  std::span<const unfinished> rest;  // comes after those that are full
};
// All there is at one moment, while the trace goes on.
lot take_all(all_unfinished& room) noexcept;

void give_back(chunk* c) noexcept;
// The writer is done: the memory goes back to the system, and the next trace may begin.
void free_chunks() noexcept;

}  // namespace weft::trace
