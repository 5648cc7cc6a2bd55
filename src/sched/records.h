// Spawn records: one cache line each, cached per P.
#pragma once

#include "sched/magazine_pool.h"

namespace weft::sched {

extern magazine_pool<record> record_pool;

[[gnu::always_inline]] inline record* take_record(processor* p) noexcept { return record_pool.take(p->records); }

[[gnu::always_inline]] inline void put_record(processor* p, record* r) noexcept {
  r->ops = nullptr;  // free: dumps skip it
  record_pool.put(p->records, r);
}

// For plain threads.
inline record* take_shared_record() noexcept { return record_pool.take_shared(); }
inline void put_shared_record(record* r) noexcept {
  r->ops = nullptr;
  record_pool.put_shared(r);
}

}  // namespace weft::sched
