#include "poll/descriptor.h"

#include "base/barrier.h"
#include "base/delay.h"
#include "base/fatal.h"
#include "base/lock.h"
#include "gmp/current.h"
#include "gmp/machine.h"
#include "os/memory.h"

namespace weft::poll {
namespace {

constexpr std::size_t chunk_bytes = 64 * 1024;

struct descriptor_pool {
  base::mutex lock{base::lock_rank::poll};
  descriptor* free WEFT_GUARDED_BY(lock) = nullptr;
};
constinit descriptor_pool pool;

// How many waits have begun and ended, counted apart by each P: one count for all would be a cache line that every wait of every
// P fetches from the others. A wait may end on another P than it began on.
struct alignas(64) tally {
  std::atomic<std::uint64_t> begun{0}, ended{0};
};
constexpr std::uint32_t most_tallies = 64;
constinit tally tallies[most_tallies];
constinit std::atomic<std::uint32_t> tallies_used{1};

// In no section: the goroutine's P may change any moment, and then it counts in the place of another, which does no harm.
tally& own_tally() noexcept {
  const gmp::machine* m = gmp::current_machine();
  const std::uint32_t i = m != nullptr ? static_cast<std::uint32_t>(m->last_p.load(std::memory_order_relaxed)) % most_tallies : 0;
  std::uint32_t used = tallies_used.load(std::memory_order_seq_cst);
  while (used <= i && !tallies_used.compare_exchange_weak(used, i + 1, std::memory_order_seq_cst)) {
  }
  return tallies[i];
}

void count_begun() noexcept { own_tally().begun.fetch_add(1, std::memory_order_seq_cst); }  // [poll.count]
void count_ended() noexcept { own_tally().ended.fetch_add(1, std::memory_order_seq_cst); }

template <std::atomic<std::uint64_t> tally::* Which>
std::uint64_t sum() noexcept {
  const std::uint32_t used = tallies_used.load(std::memory_order_seq_cst);
  std::uint64_t n = 0;
  for (std::uint32_t i = 0; i < used; ++i) n += (tallies[i].*Which).load(std::memory_order_seq_cst);
  return n;
}

void add_chunk() noexcept WEFT_REQUIRES(pool.lock) {
  auto* memory = static_cast<std::byte*>(os::map_memory(chunk_bytes));
  for (std::size_t at = 0; at + sizeof(descriptor) <= chunk_bytes; at += sizeof(descriptor)) {
    auto* d = new (memory + at) descriptor;
    d->next_free = pool.free;
    pool.free = d;
  }
}

}  // namespace

// [poll.count] Those that have ended first: of each of these, the beginning is found then. So the difference is never too low.
std::uint64_t waiter_count() noexcept {
  const std::uint64_t ended = sum<&tally::ended>();
  base::delay();
  return sum<&tally::begun>() - ended;
}

bool any_waiter() noexcept { return waiter_count() != 0; }

announced slot::announce(waiter& w) noexcept {
  count_begun();  // before it can be taken, so that the count is never too low
  for (std::uintptr_t state = idle;;) {
    base::delay();
    if (state == idle) {
      // [slot.waiter], [poll.deadline]
      if (word_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(&w), std::memory_order_seq_cst)) {
        return announced::waiting;
      }
      continue;
    }
    if (state != ready && state != closed) base::fatal("two goroutines wait in one slot of a poll descriptor");
    if (state == closed || word_.compare_exchange_weak(state, idle, std::memory_order_acq_rel, std::memory_order_acquire)) {
      base::settle_exchange();  // [slot.used] who sees `ready` from here on sees what was there before the call that comes next
      count_ended();
      return state == closed ? announced::closed : announced::ready;
    }
  }
}

bool slot::withdraw(waiter& w) noexcept {
  auto expected = reinterpret_cast<std::uintptr_t>(&w);
  base::delay();
  if (!word_.compare_exchange_strong(expected, idle, std::memory_order_acq_rel, std::memory_order_acquire)) return false;
  count_ended();
  return true;
}

waiter* slot::likely_waiter() const noexcept {
  const std::uintptr_t state = word_.load(std::memory_order_relaxed);
  return state > closed ? reinterpret_cast<waiter*>(state) : nullptr;
}

waiter* slot::take(bool leave_ready) noexcept {
  std::uintptr_t state = word_.load(std::memory_order_seq_cst);  // [poll.deadline]
  for (;;) {
    if (state == closed || (!leave_ready && (state == idle || state == ready))) return nullptr;
    base::delay();
    // [slot.waiter]. Also `ready` is written anew: who uses it up must see what was noted in the descriptor before.
    const bool vacant = state == idle || state == ready;
    if (!word_.compare_exchange_weak(state, vacant ? ready : idle, std::memory_order_seq_cst)) {
      continue;
    }
    if (vacant) return nullptr;
    count_ended();
    return reinterpret_cast<waiter*>(state);
  }
}

waiter* slot::notify() noexcept { return take(true); }

waiter* slot::nudge() noexcept { return take(false); }

waiter* slot::close() noexcept {
  base::delay();
  const std::uintptr_t state = word_.exchange(closed, std::memory_order_acq_rel);  // [slot.waiter], [slot.closed]
  if (state == idle || state == ready || state == closed) return nullptr;
  count_ended();
  return reinterpret_cast<waiter*>(state);
}

void slot::reset() noexcept {
  deadline_.store(no_deadline, std::memory_order_relaxed);
  word_.store(idle, std::memory_order_release);
}

descriptor* take_descriptor() noexcept {
  descriptor* d;
  {
    base::lock_guard guard(pool.lock);
    if (pool.free == nullptr) add_chunk();
    d = pool.free;
    pool.free = d->next_free;
  }
  d->tag.store(d->tag.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  d->exceptional.store(false, std::memory_order_relaxed);
  for (slot& s : d->slots) s.reset();
  return d;
}

void put_descriptor(descriptor* d) noexcept {
  // Closed while nobody uses it: an event that comes late must not find a slot to make ready.
  for (slot& s : d->slots) {
    if (s.close() != nullptr) base::fatal("a poll descriptor was given back while somebody waited on it");
  }
  base::lock_guard guard(pool.lock);
  d->next_free = pool.free;
  pool.free = d;
}

}  // namespace weft::poll
