#include "sched/queues.h"

#include <algorithm>
#include <utility>

#include "base/delay.h"
#include "os/clock.h"
#include "sched/idle.h"
#include "sched/spawn.h"
#include "sched/tracing.h"
#include "sched/yield_layout.h"

namespace weft::sched {
namespace {

// So many wait in the global queue already that the next ones' memory would be cold before they run: whoever keeps adding
// to them queues up behind them at its next preemption point, as it would at the end of its slice.
constexpr std::size_t backlog = 4096;

// With so many in the ring, a goroutine's children go before them when it waits.
constexpr std::uint32_t breadth = 32;
// Meanwhile the global queue has its turn less often than at every 61st choice: what comes from there is most likely the root
// of another tree, and those that were begun here would wait with their stacks until it is done.
constexpr std::uint32_t deep_fairness_ticks = 64 * fairness_ticks;
constexpr std::int64_t deep_fairness_ns = 5'000'000;

void end_slice_for_backlog(processor* p) noexcept {
  p->attention.store(true, std::memory_order_relaxed);
  p->counters.backlog_preemptions.bump();
}

// Half of the full ring and the newcomer, in one batch under one lock.
bool overflow(processor* p, runnable* r) noexcept {
  runnable* batch[processor::ring_size / 2];
  const std::uint32_t n = p->ring.take_half(batch);
  if (n == 0) return false;
  base::lock_guard guard(sched.lock);
  for (std::uint32_t i = 0; i < n; ++i) sched.global.push(batch[i]);
  sched.global.push(r);
  global_size_changed();
  p->counters.overflows.bump();
  if (sched.global.size() >= backlog) end_slice_for_backlog(p);
  return true;
}

// The first of those stopped in place, if all that were queued before it are gone.
goroutine* take_due_stopped() noexcept WEFT_REQUIRES(sched.lock) {
  const goroutine* g = sched.stopped_first;
  return g != nullptr && g->stop_ticket <= sched.global.popped() ? take_stopped() : nullptr;
}

// How many may leave the global queue before it is the turn of one that is stopped in place.
std::size_t ahead_of_stopped() noexcept WEFT_REQUIRES(sched.lock) {
  if (sched.stopped_first == nullptr) return sched.global.size();
  return sched.stopped_first->stop_ticket - sched.global.popped();
}

}  // namespace

void global_size_changed() noexcept {
  const auto stopped = static_cast<std::size_t>(sched.stopped_in_place.load(std::memory_order_relaxed));
  sched.global_size.store(sched.global.size() + stopped, std::memory_order_release);
}

void put_stopped(goroutine* g) noexcept {
  g->stop_ticket = sched.global.pushed();
  g->link = nullptr;
  if (sched.stopped_first == nullptr) {
    sched.stopped_first = g;
  } else {
    sched.stopped_last->link = g;
  }
  sched.stopped_last = g;
  sched.stopped_in_place.fetch_add(1, std::memory_order_relaxed);
  global_size_changed();
}

goroutine* take_stopped() noexcept {
  goroutine* g = sched.stopped_first;
  if (g == nullptr) return nullptr;
  sched.stopped_first = static_cast<goroutine*>(g->link);
  if (sched.stopped_first == nullptr) sched.stopped_last = nullptr;
  g->link = nullptr;
  sched.stopped_in_place.fetch_sub(1, std::memory_order_relaxed);
  global_size_changed();
  return g;
}

void put_last_overflowing(processor* p, runnable* r) noexcept {
  while (!p->ring.push(r)) {
    if (overflow(p, r)) return;
  }
}

std::uint64_t put_global(runnable* r) noexcept {
  base::lock_guard guard(sched.lock);
  sched.global.push(r);
  global_size_changed();
  return sched.global.pushed();
}

runnable* take_newest_of_many(processor* p) noexcept {
  if (p->ring.size() <= breadth) return nullptr;
  runnable* r = p->ring.peek_last();
  return take_last(p) ? r : nullptr;
}

void put_back_newest(processor* p, runnable* r) noexcept {
  put_last(p, r);
  if (p->ring.size() == 1) wake_after_put_last();  // thieves have taken all others: one may have looked here in vain [wake.submit]
}

runnable* take_newest_child(processor* p, goroutine* parent) noexcept {
  runnable* r = parent->is_main ? nullptr : take_newest_of_many(p);
  if (r == nullptr) return nullptr;
  // Out of the ring it is ours, and may be looked at.
  if (is_record(r) && static_cast<record*>(r)->creator == parent->id) {
    p->counters.depth_first.bump();
    p->went_deep = true;
    return r;
  }
  parent->may_have_children = false;
  put_back_newest(p, r);
  return nullptr;
}

// Whether the global queue is to have its turn at this choice. After a child went before older ones the turns are rarer, but
// choices that take long do not make them so.
static bool is_turn_of_global(processor* p, std::uint32_t choice) noexcept {
  if (choice % fairness_ticks != 0) return false;
  const std::int64_t now = sched.coarse_now.load(std::memory_order_relaxed);
  const bool deep = std::exchange(p->went_deep, false);
  if (deep && choice % deep_fairness_ticks != 0 && now - p->turn_of_global < deep_fairness_ns) return false;
  p->turn_of_global = now;
  return sched.global_size.load(std::memory_order_relaxed) != 0;
}

// Until the next look, so that they do not put it off for long.
static void grant_short_yields(processor* p, std::uint32_t n) noexcept {
  if (!WEFT_HAS_SHORT_YIELDS || !p->alone || is_traced(p)) return;
  p->short_yields_credit.store(std::uint64_t{p->short_yields() + n} << 32 | n, std::memory_order_relaxed);
}

void settle_short_yields(processor* p) noexcept {
  const std::uint32_t yields = p->short_yields();
  p->short_yields_credit.store(std::uint64_t{yields} << 32, std::memory_order_relaxed);
  const std::uint32_t since = p->short_yields_noted.note(yields);
  // Not beyond the choice at which to look around: at that very number the global queue has its turn.
  const auto room = static_cast<std::int32_t>(p->look_at - 1 - p->picks.load(std::memory_order_relaxed));
  const std::uint32_t counted = std::min(since, static_cast<std::uint32_t>(std::max(room, 0)));
  p->short_picks += counted;
  p->look_at -= counted;
}

bool look_around(processor* p, std::uint32_t picks) noexcept {
  settle_short_yields(p);
  p->picks_noted.note(picks - 1);
  if (p->crowded.load(std::memory_order_relaxed)) [[unlikely]] return true;
  const std::int64_t timer = p->timers.next_when();  // 0: there is none
  if (timer != 0 && timer <= os::now_ns()) {
    if (!put_off_timers(p)) return true;
    p->look_at = picks + 1;
    return false;
  }
  const std::uint32_t choice = choice_at(p, picks);
  if (is_turn_of_global(p, choice)) return true;
  if (choice % network_ticks == 0 && poll::any_waiter()) return true;
  const std::uint32_t next = std::min(fairness_ticks - choice % fairness_ticks, network_ticks - choice % network_ticks);
  p->look_at = picks + (timer != 0 ? std::min(timer_ticks, next) : next);
  grant_short_yields(p, p->look_at - picks - 1);
  return false;
}

void renew_short_yields(processor* p) noexcept {
  settle_short_yields(p);
  const std::uint32_t picks = p->picks.load(std::memory_order_relaxed) + 1;
  if (p->attention.load(std::memory_order_relaxed) || !is_look_due(p, picks) || look_around(p, picks)) return;
  grant_short_yields(p, p->look_at - picks);  // with the choice for which it has looked
}

runnable* take_global_one(processor* p) noexcept {
  runnable* r = take_due_stopped();
  if (r == nullptr) r = static_cast<runnable*>(sched.global.pop());
  if (r != nullptr) {
    global_size_changed();
    p->counters.global_taken.bump();
  }
  return r;
}

runnable* take_global_batch(processor* p) noexcept {
  if (goroutine* stopped = take_due_stopped()) return stopped;
  const std::size_t size = ahead_of_stopped();
  if (size == 0) return nullptr;
  const auto procs = static_cast<std::size_t>(sched.procs.load(std::memory_order_acquire));
  const std::size_t n = std::min({size, size / procs + 1, std::size_t{processor::ring_size / 2}});
  auto* first = static_cast<runnable*>(sched.global.pop());
  base::prefetch(first);
  runnable* batch[processor::ring_size / 2];
  std::uint32_t taken = 0;
  while (taken + 1 < n) batch[taken++] = static_cast<runnable*>(sched.global.pop());
  // The ring is empty or nearly so when this is called, and a batch is at most half of it.
  for (std::uint32_t at = p->ring.push_batch(batch, taken); at < taken; ++at) sched.global.push(batch[at]);
  // [wake.idle] only now: who sees the global queue empty must see these in the ring
  global_size_changed();
  p->counters.global_batches.bump();
  p->counters.global_taken.add(taken + 1);
  return first;
}

}  // namespace weft::sched
