#include "sched/thrift.h"

#include <algorithm>
#include <atomic>

namespace weft::sched {
namespace {

constexpr std::int64_t most = 2'000'000;
constexpr std::int64_t interval = 20'000;

alignas(64) constinit std::atomic<std::int64_t> credit{most};
constinit std::atomic<std::int64_t> counted{0};  // until when the time that passes has been added

void add(std::int64_t ns) noexcept {
  const std::int64_t room = most - credit.load(std::memory_order_relaxed);
  credit.fetch_add(std::min(ns, room), std::memory_order_relaxed);
}

}  // namespace

bool may_look(std::int64_t now) noexcept {
  std::int64_t last = counted.load(std::memory_order_relaxed);
  if (now - last >= interval && counted.compare_exchange_strong(last, now, std::memory_order_relaxed)) add((now - last) / 8);
  return credit.load(std::memory_order_relaxed) > 0;
}

// At most so much: the kernel may have had the core for an hour.
void looked_in_vain(std::int64_t ns) noexcept { credit.fetch_sub(std::min(ns, most), std::memory_order_relaxed); }

void worked(std::int64_t ns) noexcept { add(ns / 2); }

}  // namespace weft::sched
