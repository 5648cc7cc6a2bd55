#include "sched/records.h"

#include <new>

#include "arch/sanitizer.h"
#include "os/memory.h"

namespace weft::sched {
namespace {

constexpr std::size_t arena_bytes = 2 * 1024 * 1024;

// Free records in chains. A chain's first record holds the link to the next chain, and the length of its own, in its
// payload, so a whole batch changes hands in a few instructions.
struct chain_head {
  record* next_chain;
  std::uint32_t length;
};

chain_head& head_of(record* r) noexcept { return *reinterpret_cast<chain_head*>(r->payload); }

struct record_pool {
  base::mutex lock{base::lock_rank::records};
  record* chains WEFT_GUARDED_BY(lock) = nullptr;
  std::byte* fresh WEFT_GUARDED_BY(lock) = nullptr;
  std::byte* fresh_end WEFT_GUARDED_BY(lock) = nullptr;
  record* singles WEFT_GUARDED_BY(lock) = nullptr;  // plain threads' own list
};
constinit record_pool pool;

record* fresh_chain() noexcept WEFT_REQUIRES(pool.lock) {
  if (pool.fresh == pool.fresh_end) {
    pool.fresh = static_cast<std::byte*>(os::map_huge(arena_bytes));
    pool.fresh_end = pool.fresh + arena_bytes;
    arch::register_roots(pool.fresh, arena_bytes);
  }
  record* first = nullptr;
  // Linked so that the list hands them out in address order: the hardware prefetches ascending lines.
  for (std::uint32_t i = record_batch; i-- > 0;) {
    auto* r = new (pool.fresh + i * sizeof(record)) record;
    r->link = first;
    first = r;
  }
  pool.fresh += record_batch * sizeof(record);
  head_of(first) = {nullptr, record_batch};
  return first;
}

record* take_chain() noexcept WEFT_REQUIRES(pool.lock) {
  record* c = pool.chains;
  if (c == nullptr) return fresh_chain();
  pool.chains = head_of(c).next_chain;
  return c;
}

}  // namespace

void refill_records(processor* p) noexcept {
  base::lock_guard guard(pool.lock);
  record* c = take_chain();
  p->records = c;
  p->record_count = head_of(c).length;
}

void flush_records(processor* p, std::uint32_t keep) noexcept {
  if (p->record_count <= keep) return;
  // The most recently used ones stay: they are warm.
  const std::uint32_t surplus = p->record_count - keep;
  record* chain = p->records;
  if (keep == 0) {
    p->records = nullptr;
  } else {
    record* last = p->records;
    for (std::uint32_t i = 1; i < keep; ++i) last = static_cast<record*>(last->link);
    chain = static_cast<record*>(last->link);
    last->link = nullptr;
  }
  p->record_count = keep;
  base::lock_guard guard(pool.lock);
  head_of(chain) = {pool.chains, surplus};
  pool.chains = chain;
}

record* take_shared_record() noexcept {
  base::lock_guard guard(pool.lock);
  if (pool.singles == nullptr) pool.singles = take_chain();
  record* r = pool.singles;
  pool.singles = static_cast<record*>(r->link);
  return r;
}

void put_shared_record(record* r) noexcept {
  base::lock_guard guard(pool.lock);
  r->ops = nullptr;
  r->link = pool.singles;
  pool.singles = r;
}

}  // namespace weft::sched
