#include "sched/transit.h"

#include <utility>

#include "base/delay.h"
#include "base/fatal.h"

namespace weft::sched {
namespace {

// After so many in a row that came from calls, those that were queued have their turn.
constexpr std::int32_t most_robberies = 16;

constinit std::atomic<machine*> handed{nullptr};
constinit std::atomic<std::int32_t> robberies{0};  // since an M last arrived with its P
constinit machine* robbed WEFT_GUARDED_BY(sched.lock) = nullptr;

}  // namespace

void announce_transit(machine* m) noexcept { handed.store(m, std::memory_order_relaxed); }

processor* take_from_transit() noexcept {
  if (robberies.load(std::memory_order_relaxed) >= most_robberies) return nullptr;
  machine* m = handed.exchange(nullptr, std::memory_order_relaxed);
  if (m == nullptr) return nullptr;
  base::delay();
  processor* p = m->take_next_processor();
  if (p == nullptr) return nullptr;
  if (m->spinning) base::fatal("M ", std::uint64_t{m->id}, " was to be a spinner, and its P has been taken");
  robberies.fetch_add(1, std::memory_order_relaxed);
  robbed = m;
  return p;
}

machine* take_robbed() noexcept { return std::exchange(robbed, nullptr); }

processor* arrive(machine* m) noexcept {
  processor* p = m->take_next_processor();  // [transit.give]
  base::delay();
  if (p == nullptr) {
    base::lock_guard guard(sched.lock);
    p = m->take_next_processor();
    if (p == nullptr) {
      if (robbed == m) robbed = nullptr;
      return nullptr;
    }
  }
  if (handed.load(std::memory_order_relaxed) == m) {
    machine* self = m;
    handed.compare_exchange_strong(self, nullptr, std::memory_order_relaxed);
  }
  robberies.store(0, std::memory_order_relaxed);
  return p;
}

}  // namespace weft::sched
