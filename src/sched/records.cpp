#include "sched/records.h"

#include <new>
#include <utility>

#include "arch/sanitizer.h"
#include "os/memory.h"

namespace weft::sched {
namespace {

constexpr std::size_t arena_bytes = 2 * 1024 * 1024;

struct record_pool {
  base::mutex lock{base::lock_rank::records};
  record_magazine* full WEFT_GUARDED_BY(lock) = nullptr;   // or at least not empty
  record_magazine* empty WEFT_GUARDED_BY(lock) = nullptr;
  std::byte* fresh WEFT_GUARDED_BY(lock) = nullptr;
  std::byte* fresh_end WEFT_GUARDED_BY(lock) = nullptr;
  record_magazine* threads WEFT_GUARDED_BY(lock) = nullptr;  // plain threads' own
};
constinit record_pool pool;

std::byte* carve(std::size_t bytes) noexcept WEFT_REQUIRES(pool.lock) {
  if (static_cast<std::size_t>(pool.fresh_end - pool.fresh) < bytes) {
    pool.fresh = static_cast<std::byte*>(os::map_huge(arena_bytes));
    pool.fresh_end = pool.fresh + arena_bytes;
    arch::register_roots(pool.fresh, arena_bytes);
  }
  return std::exchange(pool.fresh, pool.fresh + bytes);
}

void push(record_magazine*& list, record_magazine* m) noexcept { m->next = std::exchange(list, m); }

record_magazine* take_empty() noexcept WEFT_REQUIRES(pool.lock) {
  constexpr std::size_t bytes = (sizeof(record_magazine) + alignof(record) - 1) / alignof(record) * alignof(record);
  if (pool.empty == nullptr) return ::new (carve(bytes)) record_magazine;
  return std::exchange(pool.empty, pool.empty->next);
}

record_magazine* take_full() noexcept WEFT_REQUIRES(pool.lock) {
  if (pool.full != nullptr) return std::exchange(pool.full, pool.full->next);
  record_magazine* m = take_empty();
  std::byte* memory = carve(record_magazine::capacity * sizeof(record));
  // Handed out in the order of their addresses: the hardware prefetches ascending lines.
  for (std::uint32_t i = record_magazine::capacity; i-- > 0;) {
    m->records[m->count++] = ::new (memory + i * sizeof(record)) record;
  }
  return m;
}

void give_back(record_magazine* m) noexcept WEFT_REQUIRES(pool.lock) {
  if (m != nullptr) push(m->count == 0 ? pool.empty : pool.full, m);
}

void exchange_for_full(record_magazine*& m) noexcept WEFT_REQUIRES(pool.lock) {
  give_back(m);
  m = take_full();
}

void exchange_for_empty(record_magazine*& m) noexcept WEFT_REQUIRES(pool.lock) {
  give_back(m);
  m = take_empty();
}

}  // namespace

// A P has two magazines: so one that spawns and ends by turns does not come here each time.
void refill_records(processor* p) noexcept {
  std::swap(p->records, p->other_records);
  if (p->records != nullptr && p->records->count != 0) return;
  base::lock_guard guard(pool.lock);
  exchange_for_full(p->records);
}

void make_room_for_records(processor* p) noexcept {
  std::swap(p->records, p->other_records);
  if (p->records != nullptr && p->records->count == 0) return;
  base::lock_guard guard(pool.lock);
  exchange_for_empty(p->records);
}

void flush_records(processor* p) noexcept {
  base::lock_guard guard(pool.lock);
  give_back(std::exchange(p->records, nullptr));
  give_back(std::exchange(p->other_records, nullptr));
}

record* take_shared_record() noexcept {
  base::lock_guard guard(pool.lock);
  if (pool.threads == nullptr || pool.threads->count == 0) exchange_for_full(pool.threads);
  return pool.threads->records[--pool.threads->count];
}

void put_shared_record(record* r) noexcept {
  base::lock_guard guard(pool.lock);
  r->ops = nullptr;
  if (pool.threads == nullptr || pool.threads->count == record_magazine::capacity) exchange_for_empty(pool.threads);
  pool.threads->records[pool.threads->count++] = r;
}

}  // namespace weft::sched
