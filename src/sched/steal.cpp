#include "sched/steal.h"

#include <numeric>

#include "base/delay.h"
#include "base/pause.h"
#include "os/clock.h"
#include "sched/queues.h"
#include "sched/syscall.h"
#include "sched/timers.h"
#include "sched/tracing.h"

namespace weft::sched {

constinit steal_order victims;

void steal_order::reset(std::uint32_t count) noexcept {
  count_ = count;
  coprime_count_ = 0;
  for (std::uint32_t i = 1; i <= count; ++i) {
    if (std::gcd(i, count) == 1) coprimes_[coprime_count_++] = static_cast<std::uint16_t>(i);
  }
}

namespace {

constexpr int passes = 4;
constexpr std::int64_t runnext_grace_ns = 3'000;

// Whether the owner chooses goroutines in the next moment: then it is doing its job.
bool is_choosing(const processor* victim) noexcept {
  const std::uint32_t picks = victim->picks.load(std::memory_order_relaxed);
  const std::int64_t until = os::now_ns() + runnext_grace_ns;
  do {
    for (int i = 0; i < 8; ++i) base::cpu_pause();
    if (victim->picks.load(std::memory_order_relaxed) != picks) return true;
  } while (os::now_ns() < until);
  return false;
}

// A goroutine in runnext was readied by the one that runs now, which most likely is about to park; taking it away
// would tear a pair that talks apart. So wait a moment; but not for one that is in a blocking call.
runnable* steal_runnext(processor* thief, processor* victim, bool& spared) noexcept {
  runnable* next = victim->runnext.load(std::memory_order_relaxed);
  if (next == nullptr) return nullptr;
  if (goroutine_in_call(victim) == nullptr && is_choosing(victim)) {
    spared = true;
    thief->counters.runnext_spared.bump();
    return nullptr;
  }
  base::delay();
  if (!victim->runnext.compare_exchange_strong(next, nullptr, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    return nullptr;
  }
  thief->counters.runnext_steals.bump();
  return next;
}

runnable* take_own(processor* p) noexcept {
  runnable* r = take_runnext(p);
  return r != nullptr ? r : p->ring.pop();
}

// How a thief goes about it.
struct manner {
  bool last_pass;
  std::int64_t looked_ns;
};

runnable* steal_from(machine* m, processor* victim, manner how, bool& spared) noexcept {
  processor* thief = m->p;
  const std::uint32_t waiting = victim->ring.size();
  if (waiting != 0 && m->hauls.leaves(waiting, how.looked_ns)) {
    if (how.last_pass) thief->counters.steals_put_off.bump();
    return nullptr;
  }
  std::uint32_t moved = 0;
  runnable* r = victim->ring.grab_half(thief->ring, moved);
  m->hauls.took(moved);
  if (r == nullptr && how.last_pass) {
    r = steal_runnext(thief, victim, spared);
    moved = r != nullptr ? 1 : 0;
  }
  if (r != nullptr) {
    thief->counters.steals.bump();
    thief->counters.stolen.add(moved);
    if (is_traced(thief)) [[unlikely]] trace_steal(thief, victim, moved);
  }
  return r;
}

steal_result steal_pass(machine* m, manner how, std::int64_t& now) noexcept {
  processor* thief = m->p;
  steal_result result;
  thief->counters.steal_attempts.bump();
  victims.walk(m->rng.next(), [&](std::uint32_t at) noexcept {
    if (sched.stopping.load(std::memory_order_relaxed)) return true;
    processor* victim = processor_at(static_cast<int>(at));
    if (victim == thief) return false;
    if (how.last_pass && may_have_timers(static_cast<int>(at)) && steal_timers(m, victim, now)) {
      result.found = take_own(thief);  // what the timers readied is in the thief's own queue
    }
    // An idle P has no goroutines, but it may have timers.
    if (result.found == nullptr && !is_idle(static_cast<int>(at))) {
      result.found = steal_from(m, victim, how, result.spared);
    }
    return result.found != nullptr;
  });
  return result;
}

}  // namespace

steal_result steal(machine* m, std::int64_t looked_ns) noexcept {
  std::int64_t now = 0;
  steal_result result;
  for (int pass = 0; pass < passes && result.found == nullptr; ++pass) result = steal_pass(m, {pass == passes - 1, looked_ns}, now);
  return result;
}

runnable* steal_for_yielder(machine* m, bool last_pass) noexcept {
  std::int64_t now = 0;
  const steal_result result = steal_pass(m, {last_pass, gmp::hauls::most_patience_ns}, now);
  m->hauls.took(0);  // a yielder does not tell what it was worth
  return result.found;
}

}  // namespace weft::sched
