// Spawn records: one cache line each, cached per P in magazines, from arenas with huge pages.
#pragma once

#include "base/prefetch.h"
#include "gmp/record_magazine.h"
#include "sched/scheduler.h"

namespace weft::sched {

using gmp::record_magazine;

// The P's magazine is empty, or full: puts another in its place.
void refill_records(processor* p) noexcept;
void make_room_for_records(processor* p) noexcept;
// Moves all that the P has to the shared pool.
void flush_records(processor* p) noexcept;

[[gnu::always_inline]] inline record* take_record(processor* p) noexcept {
  if (p->records == nullptr || p->records->count == 0) [[unlikely]] refill_records(p);
  constexpr std::uint32_t ahead = 8;
  record_magazine& m = *p->records;
  record* r = m.records[--m.count];
  if (m.count >= ahead) base::prefetch_to_write(m.records[m.count - ahead]);
  return r;
}

[[gnu::always_inline]] inline void put_record(processor* p, record* r) noexcept {
  r->ops = nullptr;  // free: dumps skip it
  if (p->records == nullptr || p->records->count == record_magazine::capacity) [[unlikely]] make_room_for_records(p);
  record_magazine& m = *p->records;
  m.records[m.count++] = r;
}

// For plain threads.
record* take_shared_record() noexcept;
void put_shared_record(record* r) noexcept;

}  // namespace weft::sched
