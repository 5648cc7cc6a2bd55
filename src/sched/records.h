// Spawn records: one cache line each, cached per P in chains, from arenas with huge pages.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// Refills the P's list, which is empty.
void refill_records(processor* p) noexcept;
// Moves the P's surplus to the shared pool.
void flush_records(processor* p, std::uint32_t keep) noexcept;

inline constexpr std::uint32_t record_batch = 256;

[[gnu::always_inline]] inline record* take_record(processor* p) noexcept {
  if (p->records == nullptr) [[unlikely]] refill_records(p);
  record* r = p->records;
  p->records = static_cast<record*>(r->link);
  --p->record_count;
  return r;
}

[[gnu::always_inline]] inline void put_record(processor* p, record* r) noexcept {
  r->ops = nullptr;  // free: dumps skip it
  r->link = p->records;
  p->records = r;
  if (++p->record_count >= 2 * record_batch) [[unlikely]] flush_records(p, record_batch);
}

// For plain threads.
record* take_shared_record() noexcept;
void put_shared_record(record* r) noexcept;

}  // namespace weft::sched
