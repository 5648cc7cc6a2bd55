#include "sched/home_lock.h"

#include <algorithm>
#include <cerrno>

#include "arch/sanitized.h"
#include "base/backoff.h"
#include "os/clock.h"
#include "sched/revoke.h"
#include "sched/scheduler.h"

namespace weft::sched {
namespace {

#ifdef WEFT_TSAN
constexpr bool homes_exist = false;
#else
constexpr bool homes_exist = true;
#endif

// Many channels that get a home and leave it again, one after the other, would each be sent away in turn. So once one has left,
// no other gets a home for so long, and until sysmon has looked at the clock again.
#ifdef WEFT_DEBUG_DELAYS
constexpr std::int64_t settling_ns = 0;
#else
constexpr std::int64_t settling_ns = 1'000'000;
#endif
constinit std::atomic<std::int64_t> last_left{0};

bool has_settled() noexcept {
  return sched.coarse_now.load(std::memory_order_relaxed) - last_left.load(std::memory_order_relaxed) >= settling_ns;
}

// The kernel may be short of memory for a moment. It does not forget what it can.
void barrier_for_sure() noexcept {
  const int saved = errno;
  int attempts = 1000;
  for (base::backoff wait; !barrier_everywhere(); wait.once()) {
    if (--attempts == 0) base::fatal("a channel cannot be taken from its home: membarrier fails, and has worked before (a sandbox must go on allowing it)");
  }
  errno = saved;
}

}  // namespace

void home_lock::lock_slow(machine* m, int pauses) noexcept {
  base::attempt_at_intervals([this] { return word_.load(std::memory_order_relaxed) == 0 && try_word(); }, pauses);
  take_word(m);
}

// word_ is the caller's; then the lock is.
void home_lock::take_word(machine* m) noexcept {
  if (home_.load(std::memory_order_relaxed) != 0) send_away(m);  // [home.give]
  const std::uint16_t here = m != nullptr ? number_of(m) : 0;
  if (here == 0 || last_ != here) {
    last_ = here;
    left_ = needed_;
  } else if (left_-- == 0) {
    consider_home(m);
  }
}

// With the lock, after so many uses by one P.
void home_lock::consider_home(machine* m) noexcept {
  const bool too_soon = needed_ == needed_alone && !m->p->alone;
  if (too_soon) needed_ = needed_among_others;
  left_ = needed_;
  if (!homes_exist || too_soon || !can_revoke() || !has_settled()) return;
  const std::uint16_t here = number_of(m);
  if (bound_ != here && !may_bind()) return;
  bound_ = here;
  m->p->counters.homes_given.bump();
  home_.store(here, std::memory_order_relaxed);  // [home.give] published by the release of word_
}

// Whether no M is about to retreat from bound_'s home, which this channel has left. One that is looked at home_ before the barrier
// of who sent the channel away, or it would have seen that. By then it had raised `locks` and was the owner of bound_, and both
// it stays until it has retreated; so we, who have word_ after that sender, see both, or something later. `locks` goes back to 0 by
// a release, which carries the retreat. Ms are never unmapped.
// (If bound_ is our own P, there is no such M: it would own that P, too.)
bool home_lock::may_bind() const noexcept {
  if (bound_ == 0) return true;
  const machine* m = processor_at(bound_ - 1)->owner.load(std::memory_order_acquire);
  if (m != nullptr && m->locks.load(std::memory_order_acquire) != 0) return false;  // [section.leave]
  barrier_for_sure();  // if the P has another owner now, or none, the retreat is seen after this at the latest
  return true;
}

void home_lock::send_away(machine* m) noexcept {
  home_.store(0, std::memory_order_relaxed);  // [home.leave]
  base::delay();
  barrier_for_sure();
  for (base::backoff wait; inside_.load(std::memory_order_acquire) != outside;) wait.once();  // [home.exit]
  needed_ = static_cast<std::uint16_t>(std::clamp(2 * needed_, 2 * needed_among_others, int{most_needed}));
  last_left.store(os::now_ns(), std::memory_order_relaxed);
  if (m != nullptr) m->p->counters.homes_left.bump();
}

}  // namespace weft::sched
