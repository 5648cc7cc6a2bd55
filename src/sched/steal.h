// Work stealing.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// The order in which a thief visits the Ps: start anywhere, step by a number coprime to the count, so every P is
// visited once and different thieves take different ways.
class steal_order {
 public:
  // Only while the world is stopped.
  void reset(std::uint32_t count) noexcept;

  template <class Visit>  // bool(std::uint32_t position); true ends the walk
  void walk(std::uint32_t seed, Visit&& visit) const noexcept {
    if (count_ == 0) return;
    std::uint32_t at = seed % count_;
    const std::uint32_t step = coprimes_[seed / count_ % coprime_count_];
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (visit(at)) return;
      at += step;
      if (at >= count_) at -= count_;
    }
  }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t coprime_count_ = 0;
  std::uint16_t coprimes_[max_procs_limit] = {};
};

extern steal_order victims;

struct steal_result {
  runnable* found = nullptr;
  bool spared = false;  // there was a runnext, but its owner is busy consuming them
};

// Four passes over all Ps; in the last one also timers, and runnexts after their grace. The M has been looking for `looked_ns`: the
// longer, the less it leaves to others. (gmp/hauls.h)
steal_result steal(machine* m, std::int64_t looked_ns) noexcept;

// One pass: a goroutine yields and its P has nothing else to run. `last_pass` as in the last of steal().
runnable* steal_for_yielder(machine* m, bool last_pass) noexcept;

}  // namespace weft::sched
