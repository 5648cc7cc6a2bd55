#include "sched/timers.h"

#include <algorithm>
#include <bit>

#include "os/clock.h"
#include "poll/poller.h"
#include "sched/finishing.h"
#include "sched/idle.h"
#include "sched/section.h"

namespace weft::sched {
namespace {

// A timer earlier than all others of its P: whoever sleeps until later must know, and if nobody sleeps for timers,
// somebody should. [timer.next] the deadline is stored; the look at poll_until comes after it.
void timer_came_first(std::int64_t when) noexcept {
  const std::int64_t until = sched.poll_until.load(std::memory_order_seq_cst);
  if (until != 0) {
    if (when < until) poll::interrupt();
  } else {
    wake_processor();
  }
}

// Those Ps that may have timers: a few of many, if most are idle.
template <class Visit>
void for_each_with_timers(Visit visit) noexcept {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int first = 0; first < procs; first += 64) {
    std::uint64_t left = sched.timer_mask[first / 64].load(std::memory_order_seq_cst);  // [timer.mask]
    for (; left != 0; left &= left - 1) visit(processor_at(first + std::countr_zero(left)));
  }
}

// add(heap) makes the timer pending in that heap.
template <class Add>
[[gnu::always_inline]] inline bool start(std::int64_t when_ns, Add add) noexcept {
  machine* m = enter();
  processor* p = m != nullptr ? m->p : processor_at(0);
  const timers::armed armed = add(p->timers);
  if (m != nullptr) {
    p->counters.timers_started.bump();
    if (armed.is_first) look_around_soon(p);
  }
  if (armed.is_first) timer_came_first(when_ns);
  if (m != nullptr) leave(m);
  return armed.was_pending;
}

}  // namespace

bool start_timer(timers::timer_node& node, std::int64_t when_ns, std::int64_t period_ns, std::uint64_t seq) noexcept {
  return start(when_ns, [&](timers::heap& h) { return timers::add(h, node, when_ns, period_ns, seq); });
}

void start_fresh_timer(timers::timer_node& node, std::int64_t when_ns) noexcept {
  start(when_ns, [&](timers::heap& h) { return timers::add_fresh(h, node, when_ns); });
}

bool stop_timer(timers::timer_node& node) noexcept {
  const finishing section;
  return timers::stop(node);
}

bool stop_timer_sync(timers::timer_node& node) noexcept {
  const finishing section;
  return timers::stop_sync(node);
}

bool is_timer_due(const processor* p, std::int64_t& now) noexcept {
  const std::int64_t when = p->timers.next_when();
  if (when == 0) return false;
  if (now == 0) now = os::now_ns();
  return when <= now;
}

bool run_timers(processor* p, std::int64_t& now) noexcept {
  if (!is_timer_due(p, now)) return false;
  const auto ran = p->timers.run(now).count;
  p->counters.timers_run.add(ran);
  return ran != 0;
}

// That many times in a row within a moment: who has their lock is off its core, and the thief is on it, maybe. Not for long: others
// take the thief for somebody who looks for work.
static void wait_for_timers(machine* thief, std::int64_t now) noexcept {
  constexpr std::int64_t row_ends_ns = 1'000'000;
  constexpr long longest_nap_ns = 80'000;
  if (now - thief->kept_from_timers_when > row_ends_ns) thief->kept_from_timers = base::backoff(100, longest_nap_ns);
  thief->kept_from_timers.once();
  thief->kept_from_timers_when = now;
}

bool steal_timers(machine* thief, processor* victim, std::int64_t& now) noexcept {
  if (!is_timer_due(victim, now)) return false;
  const timers::ran ran = victim->timers.run_if_free(now);
  if (ran.next_when != 0 && ran.next_when <= now && ran.count == 0) {
    wait_for_timers(thief, now);
    return false;
  }
  thief->kept_from_timers_when = 0;
  if (ran.count == 0) return false;
  thief->p->counters.timers_run.add(ran.count);
  thief->p->counters.timers_stolen.bump();
  return true;
}

std::int64_t next_timer() noexcept {
  std::int64_t first = 0;
  for_each_with_timers([&](processor* p) noexcept {
    const std::int64_t when = p->timers.next_when();
    if (when != 0 && (first == 0 || when < first)) first = when;
  });
  return first;
}

std::uint64_t timers_run() noexcept {
  std::uint64_t n = 0;
  for (int i = 0; i < sched.procs.load(std::memory_order_acquire); ++i) n += processor_at(i)->counters.timers_run.read();
  return n;
}

void forget_stopped_timers() noexcept {
  for_each_with_timers([](processor* p) noexcept { p->timers.forget_stopped(); });
}

}  // namespace weft::sched
