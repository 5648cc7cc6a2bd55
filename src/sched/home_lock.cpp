#include "sched/home_lock.h"

#include <algorithm>

#include "base/backoff.h"
#include "base/fatal.h"
#include "sched/revoke.h"

namespace weft::sched {

void home_lock::lock_slow(machine* m, int pauses) noexcept {
  base::attempt_at_intervals([this] { return word_.load(std::memory_order_relaxed) == 0 && try_word(); }, pauses);
  take_word(m);
}

// word_ is the caller's; then the lock is.
void home_lock::take_word(machine* m) noexcept {
  if (home_.load(std::memory_order_relaxed) != 0) send_away(m);  // [home.give]
  at_home_ = false;
  const std::uint16_t here = m != nullptr ? number_of(m) : 0;
  if (here == 0 || last_ != here) {
    last_ = here;
    left_ = needed_;
  } else if (left_-- == 0) {
    left_ = needed_;
    consider_home(m);
  }
}

// With the lock, after `needed_` uses by one P.
void home_lock::consider_home([[maybe_unused]] machine* m) noexcept {
#ifndef WEFT_TSAN
  if (!can_revoke()) return;
  if (needed_ == first_needed && !m->p->alone) {
    left_ = needed_ = needed_among_others;
    return;
  }
  m->p->counters.homes_given.bump();
  home_.store(number_of(m), std::memory_order_relaxed);  // [home.give] published by the release of word_
#endif
}

void home_lock::send_away(machine* m) noexcept {
  home_.store(0, std::memory_order_relaxed);  // [home.leave]
  base::delay();
  if (!barrier_everywhere())
    base::fatal("a channel cannot be taken from its home: membarrier fails, and has worked before");
  for (base::backoff wait; inside_.load(std::memory_order_acquire) != 0;) wait.once();  // [home.exit]
  needed_ = std::min<std::uint16_t>(std::max<std::uint16_t>(needed_, needed_among_others / 2) * 2, most_needed);
  if (m != nullptr) m->p->counters.homes_left.bump();
}

}  // namespace weft::sched
