#include <weft/barrier.h>

#include "base/delay.h"
#include "sched/finishing.h"
#include "sched/section.h"
#include "sync/guard.h"
#include "sync/waiter.h"

namespace weft::detail {
namespace {

std::uint32_t phase_of(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32); }
std::ptrdiff_t missing_in(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word) >> 1; }

}  // namespace

barrier_core::arrival barrier_core::arrive(std::ptrdiff_t n) {
  std::uint64_t w = word_.load(std::memory_order_relaxed);
  do {
    if (n <= 0 || n > missing_in(w)) throw std::logic_error("weft::barrier: more arrivals than expected");
    base::delay();
    // [barrier.arrive]
  } while (!word_.compare_exchange_weak(w, w - static_cast<std::uint64_t>(n) * one, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
  return {phase_of(w), missing_in(w) == n};
}

void barrier_core::complete() noexcept {
  const sched::finishing section;
  wait_queue queue(head_);
  wake_list woken;
  take_guard(word_, guard);
  while (waiter* w = queue.pop()) woken.add(*w);
  const std::uint64_t expected = expected_.load(std::memory_order_relaxed);
  // [barrier.phase]
  release_guard(word_, guard, [&](std::uint64_t w) { return (std::uint64_t{phase_of(w) + 1} << 32) | expected * one; });
  woken.wake_all();
}

// False: the phase is over.
bool barrier_core::queue_up(waiter& self, std::uint32_t phase) noexcept {
  sched::section section;
  wait_queue queue(head_);
  const std::uint64_t w = take_guard(word_, guard);
  const bool waits = phase_of(w) == phase;  // it ends with the guard held
  if (waits) queue.push_back(self);
  release_guard(word_, guard);
  return waits;
}

void barrier_core::wait(std::uint32_t phase) noexcept {
  if (phase_of(word_.load(std::memory_order_acquire)) != phase) return;  // [barrier.phase]
  waiter self;
  if (queue_up(self, phase)) self.parker.park(wait_reason::barrier);
}

}  // namespace weft::detail
