#include <weft/time.h>

#include <weft/detail/park.h>
#include <weft/go.h>

#include "gmp/current.h"
#include "gmp/machine.h"
#include "sched/parker.h"
#include "sched/timers.h"

namespace weft::detail {
namespace {

// A goroutine that does nothing but sleep has one waker, its timer, which is set once the goroutine is off its stack: so nobody
// has to find out who was first, as a parker does. On the stack of who sleeps.
struct nap {
  timers::timer_node timer;
  const std::int64_t until;

  // The last touch, but for the timer's callback, after which nobody does: the stack may be in use again.
  static bool begin(goroutine*, void* self) noexcept {
    auto* n = static_cast<nap*>(self);
    sched::start_fresh_timer(n->timer, n->until);
    return true;
  }
  static void end(void* self, std::uint64_t, std::int64_t) noexcept {
    auto* g = static_cast<goroutine*>(self);
    gmp::fetch_frames(*g);
    ready(g);
  }
};

void sleep_thread_until(std::int64_t deadline_ns) {
  sched::parker self;
  self.park_until(wait_reason::sleep, deadline_ns);
}

void park_until(std::int64_t deadline_ns) {
  const gmp::machine* m = gmp::current_machine();
  if (m == nullptr) return sleep_thread_until(deadline_ns);
  nap n{{&nap::end, m->curg}, deadline_ns};
  park(&nap::begin, &n, wait_reason::sleep);
}

}  // namespace
// What is not to wait, or hardly, is not to wait for the quick clock's microseconds either. That clock is the thread's: a goroutine
// stays on it between the two lines, and who is stopped in place keeps it.
std::int64_t deadline_after_ns(std::int64_t ns) noexcept {
  constexpr std::int64_t long_enough = 100'000;
  gmp::machine* m = gmp::current_machine();
  const std::int64_t now = m != nullptr && ns >= long_enough ? m->clock.now_or_later() : now_ns();
  return ns > no_deadline - now ? no_deadline : now + ns;
}

// One look at the clock: it is a good part of what a sleep costs.
void sleep_for_ns(std::int64_t ns) { return ns > 0 ? park_until(deadline_after_ns(ns)) : yield(); }

void sleep_until_ns(std::int64_t deadline_ns) { return deadline_ns > now_ns() ? park_until(deadline_ns) : yield(); }

void throw_bad_period() { throw std::invalid_argument("weft::ticker: the period must be more than 0"); }

}  // namespace weft::detail
