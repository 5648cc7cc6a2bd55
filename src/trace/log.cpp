#include "trace/log.h"

#include <atomic>
#include <new>
#include <utility>

#include "base/futex.h"
#include "base/lock.h"
#include "os/clock.h"
#include "os/memory.h"

namespace weft::trace {
namespace {

constexpr std::int32_t max_logs = 1024;
// 128 MiB. Who produces faster than a core can write, for long, loses events.
constexpr std::uint32_t max_chunks = 2048;

struct exchange {
  base::mutex lock{base::lock_rank::leaf};
  chunk* full_first WEFT_GUARDED_BY(lock) = nullptr;
  chunk* full_last WEFT_GUARDED_BY(lock) = nullptr;
  chunk* empty WEFT_GUARDED_BY(lock) = nullptr;
  std::uint32_t chunks WEFT_GUARDED_BY(lock) = 0;
  bool ended WEFT_GUARDED_BY(lock) = false;
  // Changes whenever there is something new for the writer, which sleeps on it.
  base::futex_word news{0};
};
constinit exchange shared;

// Logs of Ps are made when their P first takes part in a trace, and stay.
struct book {
  std::atomic<bool> on{false};
  log* of[max_logs] = {};
  base::mutex outside_lock{base::lock_rank::trace};
  log outside WEFT_GUARDED_BY(outside_lock);
};
constinit book logs;

void push_full(chunk* c) noexcept WEFT_REQUIRES(shared.lock) {
  c->next = nullptr;
  if (shared.full_last == nullptr) {
    shared.full_first = c;
  } else {
    shared.full_last->next = c;
  }
  shared.full_last = c;
}

// Null: there are too many, or no memory.
chunk* take_empty() noexcept WEFT_REQUIRES(shared.lock) {
  chunk* c = shared.empty;
  if (c != nullptr) {
    shared.empty = c->next;
  } else if (shared.chunks < max_chunks) {
    c = static_cast<chunk*>(os::try_to_map_memory(sizeof(chunk)));
    if (c != nullptr) ++shared.chunks;
  }
  return c;
}

void tell_writer() noexcept {
  shared.news.fetch_add(1, std::memory_order_release);
  base::futex_wake(shared.news, 1);
}

}  // namespace

// The full chunk for an empty one. False: there is none, and what was to be added is lost.
bool log::renew(std::size_t wanted) noexcept {
  chunk* fresh = nullptr;
  {
    base::lock_guard guard(shared.lock);
    fresh = take_empty();
    if (fresh != nullptr && chunk_ != nullptr) push_full(chunk_);
  }
  if (fresh == nullptr) {
    lost_ += wanted;
    return false;
  }
  if (chunk_ != nullptr) tell_writer();
  fresh->source = source_;
  fresh->count = 0;
  chunk_ = fresh;
  if (lost_ != 0)
    chunk_->events[chunk_->count++] = {.when = os::now_ns(), .kind = kind::lost, .a = std::exchange(lost_, 0)};
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
  log*& l = logs.of[p];
  if (l == nullptr) {
    l = new (os::map_memory(os::page_size)) log;
    l->source_ = p;
  }
  return l;
}

void add_outside(std::span<const event> group) noexcept {
  if (!is_on()) return;
  base::lock_guard guard(logs.outside_lock);
  if (is_on()) logs.outside.add(group);
}

void begin_logging() noexcept { logs.on.store(true, std::memory_order_release); }  // [trace.on]

void end_logging() noexcept {
  {
    base::lock_guard guard(logs.outside_lock);
    logs.on.store(false, std::memory_order_release);
    logs.outside.hand_over();
  }
  for (log* l : logs.of) {
    if (l != nullptr) l->hand_over();
  }
  {
    base::lock_guard guard(shared.lock);
    shared.ended = true;
  }
  tell_writer();
}

chunk* wait_for_chunks() noexcept {
  for (;;) {
    const std::uint32_t seen = shared.news.load(std::memory_order_acquire);
    {
      base::lock_guard guard(shared.lock);
      if (chunk* all = shared.full_first; all != nullptr) {
        shared.full_first = shared.full_last = nullptr;
        return all;
      }
      if (shared.ended) return nullptr;
    }
    base::futex_wait(shared.news, seen);
  }
}

void give_back(chunk* c) noexcept {
  base::lock_guard guard(shared.lock);
  c->next = shared.empty;
  shared.empty = c;
}

void free_chunks() noexcept {
  base::lock_guard guard(shared.lock);
  shared.ended = false;
  while (chunk* c = shared.empty) {
    shared.empty = c->next;
    --shared.chunks;
    os::unmap_memory(c, sizeof(chunk));
  }
}

}  // namespace weft::trace
