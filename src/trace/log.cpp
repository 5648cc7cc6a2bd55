#include "trace/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <utility>

#include "base/futex.h"
#include "base/lock.h"
#include "os/clock.h"
#include "os/memory.h"

namespace weft::trace {
namespace {

// 128 MiB. Who produces faster than a core can write, for long, loses events.
constexpr std::uint32_t max_chunks = 2048;

struct exchange {
  base::mutex lock{base::lock_rank::leaf};
  chunk* full_first WEFT_GUARDED_BY(lock) = nullptr;
  chunk* full_last WEFT_GUARDED_BY(lock) = nullptr;
  chunk* empty WEFT_GUARDED_BY(lock) = nullptr;
  std::uint32_t full WEFT_GUARDED_BY(lock) = 0;    // how many
  std::uint32_t chunks WEFT_GUARDED_BY(lock) = 0;  // mapped
  std::uint32_t kept WEFT_GUARDED_BY(lock) = 0;    // 0: no recording
  std::int64_t complete_from WEFT_GUARDED_BY(lock) = 0;
  bool ended WEFT_GUARDED_BY(lock) = false;
  // Changes whenever there is something new for the writer, which sleeps on it.
  base::futex_word news{0};
};
constinit exchange shared;

// Logs of Ps are made when their P first takes part in a trace, and stay.
struct book {
  std::atomic<bool> on{false};
  std::array<std::atomic<log*>, max_logs> of = {};
  base::mutex outside_lock{base::lock_rank::trace};
  log outside{trace::outside};  // to be added to under outside_lock
  log census{trace::census};  // whoever has stopped the world
};
constinit book logs;

// Those of Ps; they have the numbers below.
std::size_t count_logs() noexcept {
  std::size_t n = 0;
  while (n < logs.of.size() && logs.of[n].load(std::memory_order_acquire) != nullptr) ++n;  // [trace.log]
  return n;
}

void push_full(chunk* c) noexcept WEFT_REQUIRES(shared.lock) {
  c->next = nullptr;
  if (shared.full_last == nullptr) {
    shared.full_first = c;
  } else {
    shared.full_last->next = c;
  }
  shared.full_last = c;
  ++shared.full;
}

chunk* pop_full() noexcept WEFT_REQUIRES(shared.lock) {
  chunk* const c = shared.full_first;
  shared.full_first = c->next;
  if (shared.full_first == nullptr) shared.full_last = nullptr;
  --shared.full;
  return c;
}

// Details have the time of the event that they follow.
std::int64_t last_time_in(const chunk& c) noexcept {
  for (std::uint32_t i = c.count; i-- > 0;) {
    if (c.events[i].when != 0) return c.events[i].when;
  }
  return 0;
}

// The oldest of a recording.
chunk* forget_one() noexcept WEFT_REQUIRES(shared.lock) {
  chunk* const c = pop_full();
  shared.complete_from = std::max(shared.complete_from, last_time_in(*c) + 1);
  return c;
}

// Null: there are too many, or no memory.
chunk* take_empty(bool may_forget) noexcept WEFT_REQUIRES(shared.lock) {
  chunk* c = shared.empty;
  if (c != nullptr) {
    shared.empty = c->next;
  } else if (may_forget && shared.kept != 0 && shared.full >= shared.kept) {
    c = forget_one();
  } else if (shared.chunks < shared.kept + max_chunks) {
    c = static_cast<chunk*>(os::try_to_map_memory(sizeof(chunk)));
    if (c != nullptr) ++shared.chunks;
  }
  return c;
}

void unmap(chunk* c) noexcept WEFT_REQUIRES(shared.lock) {
  --shared.chunks;
  os::unmap_memory(c, sizeof(chunk));
}

chunk* take_all_full() noexcept WEFT_REQUIRES(shared.lock) {
  shared.full = 0;
  shared.full_last = nullptr;
  return std::exchange(shared.full_first, nullptr);
}

}  // namespace

// The full chunk for an empty one. False: there is none.
bool log::replace_chunk() noexcept {
  base::lock_guard guard(shared.lock);
  chunk* const fresh = take_empty(source_ != census);
  if (fresh == nullptr) return false;
  fresh->source = source_;
  fresh->count = fresh->written = 0;
  if (chunk_ != nullptr) push_full(chunk_);
  chunk_ = fresh;
  return true;
}

// False: what was to be added is lost.
bool log::renew(std::size_t wanted) noexcept {
  const bool hands_over = chunk_ != nullptr;
  if (!replace_chunk()) {
    lost_ += wanted;
    return false;
  }
  if (hands_over) wake_writer();
  if (lost_ != 0) append({.when = os::now_ns(), .kind = kind::lost, .a = std::exchange(lost_, 0)});
  return true;
}

void log::hand_over() noexcept {
  lost_ = 0;
  if (chunk_ == nullptr) return;
  base::lock_guard guard(shared.lock);
  push_full(chunk_);
  chunk_ = nullptr;
}

bool is_on() noexcept { return logs.on.load(std::memory_order_acquire); }  // [trace.on]

log* log_of(std::int32_t p) noexcept {
  if (!is_on()) return nullptr;
  std::atomic<log*>& slot = logs.of[static_cast<std::size_t>(p)];
  log* l = slot.load(std::memory_order_relaxed);
  if (l == nullptr) {
    l = new (os::map_memory(os::page_size)) log(p);
    slot.store(l, std::memory_order_release);  // [trace.log] it exists
  }
  return l;
}

void add_outside(std::span<const event> several) noexcept {
  if (!is_on()) return;
  base::lock_guard guard(logs.outside_lock);
  if (is_on()) logs.outside.add(several);
}

void begin_logging() noexcept { logs.on.store(true, std::memory_order_release); }  // [trace.on]

// While the world is stopped.
void hand_over_all() noexcept {
  {
    base::lock_guard guard(logs.outside_lock);
    logs.outside.hand_over();
  }
  logs.census.hand_over();
  for (std::size_t p = 0, n = count_logs(); p < n; ++p) logs.of[p].load(std::memory_order_relaxed)->hand_over();
}

void end_logging() noexcept {
  {
    base::lock_guard guard(logs.outside_lock);
    logs.on.store(false, std::memory_order_release);
  }
  hand_over_all();
  {
    base::lock_guard guard(shared.lock);
    shared.ended = true;
  }
  wake_writer();
}

void begin_recording(std::uint32_t chunks) noexcept {
  {
    base::lock_guard guard(shared.lock);
    shared.kept = chunks;
  }
  begin_logging();
}

bool is_recording() noexcept {
  base::lock_guard guard(shared.lock);
  return shared.kept != 0;
}

void add_to_census(std::span<const event> several) noexcept { logs.census.add(several); }

recording take_recording() noexcept {
  hand_over_all();
  base::lock_guard guard(shared.lock);
  return {.first = take_all_full(), .complete_from = shared.complete_from};
}

void put_back(const recording& r) noexcept {
  base::lock_guard guard(shared.lock);
  chunk* newer = take_all_full();
  for (chunk* c = r.first; c != nullptr;) {
    chunk* const next = c->next;
    if (c->source == census) {
      unmap(c);
    } else {
      push_full(c);
    }
    c = next;
  }
  while (chunk* c = newer) {
    newer = c->next;
    push_full(c);
  }
  while (shared.full > shared.kept) unmap(forget_one());
}

std::uint32_t news() noexcept { return shared.news.load(std::memory_order_acquire); }

void wait_for_news(std::uint32_t seen, std::int64_t until_ns) noexcept { base::futex_wait_until(shared.news, seen, until_ns); }

void wake_writer() noexcept {
  shared.news.fetch_add(1, std::memory_order_release);
  base::futex_wake(shared.news, 1);
}

bool has_ended() noexcept {
  base::lock_guard guard(shared.lock);
  return shared.ended;
}

chunk* take_full() noexcept {
  base::lock_guard guard(shared.lock);
  return take_all_full();
}

// With shared.lock, under which the log changes its chunk.
unfinished unfinished_of(const log& l) noexcept {
  if (l.chunk_ == nullptr) return {};
  return {.what = l.chunk_, .count = l.chunk_->published()};  // [trace.count]
}

lot take_all(all_unfinished& room) noexcept {
  const std::size_t ps = count_logs();
  base::lock_guard guard(shared.lock);
  room[0] = unfinished_of(logs.outside);
  for (std::size_t p = 0; p < ps; ++p) room[p + 1] = unfinished_of(*logs.of[p].load(std::memory_order_relaxed));
  return {.full = take_all_full(), .rest = {room.data(), ps + 1}};
}

void give_back(chunk* c) noexcept {
  base::lock_guard guard(shared.lock);
  c->next = shared.empty;
  shared.empty = c;
}

void free_chunks() noexcept {
  base::lock_guard guard(shared.lock);
  shared.ended = false;
  shared.kept = 0;
  shared.complete_from = 0;
  while (shared.full_first != nullptr) unmap(pop_full());
  while (chunk* c = shared.empty) {
    shared.empty = c->next;
    unmap(c);
  }
}

}  // namespace weft::trace
