#include "sched/slices.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "os/clock.h"
#include "poll/descriptor.h"
#include "poll/poller.h"
#include "sched/idle.h"
#include "sched/preempt.h"
#include "sched/queues.h"
#include "sched/revoke.h"
#include "sched/timers.h"

namespace weft::sched {
namespace {

constexpr std::int64_t grace = 100'000;          // between asking a goroutine to give way and taking its P
constexpr std::int64_t patience = 20'000'000;    // with the factory, before a P may be handed straight to one of the stopped
constexpr std::int64_t first_look = 1'000'000;   // after so much of a slice: does it sleep in the kernel?
constexpr std::uint32_t vain_looks_before_patience = 8;

// Whether somebody had to be stopped on this P lately.
bool was_hogged(const processor* p, std::int64_t now) noexcept {
  return p->taken_when != 0 && now - p->taken_when < 10 * preemption.due_slice_ns;
}

// Until when a goroutine runs although a timer is due.
std::int64_t least_slice(const processor* p, std::int64_t now) noexcept {
  return was_hogged(p, now) ? least_slice_of_hog(p->seen_when, p->taken_when) : p->seen_when + preemption.due_slice_ns;
}

// Whether goroutines wait that nobody but the one that runs on this P can make room for.
bool others_wait(const processor* p) noexcept {
  if (sched.idle_ps.load(std::memory_order_relaxed) != 0 || somebody_spins()) return false;
  return p->has_work() || sched.global_size.load(std::memory_order_relaxed) != 0;
}

// Whether somebody whom the poller has put into the global queue stands there still.
bool is_left_in_global() noexcept {
  const std::uint64_t ticket = sched.socket_ticket.load(std::memory_order_relaxed);
  if (ticket == 0 || !any_in_global()) return false;
  base::lock_guard guard(sched.lock);
  return sched.global.popped() < ticket;
}

// A goroutine computes on and on without a call into weft, and those behind it wait although the other Ps, busy with
// their own, never come to steal: they go to the global queue, where everybody looks.
void redistribute(processor* p) noexcept {
  std::size_t moved = 0;
  {
    base::lock_guard guard(sched.lock);
    // An only P is taken from without locked instructions, and it has nobody to give to.
    if (sched.procs.load(std::memory_order_acquire) == 1 || sched.stopping.load(std::memory_order_relaxed)) return;
    runnable* batch[processor::ring_size / 2];
    while (const std::uint32_t n = p->ring.grab_half(batch)) {
      for (std::uint32_t i = 0; i < n; ++i) sched.global.push(batch[i]);
      moved += n;
    }
    if (runnable* next = p->runnext.exchange(nullptr, std::memory_order_acq_rel)) {
      sched.global.push(next);
      ++moved;
    }
    global_size_changed();
  }
  sched.redistributed.fetch_add(moved, std::memory_order_relaxed);
  if (moved != 0) wake_processor();
}

bool take_processor(processor* p, std::uint32_t tick, bool asleep, bool urgent) noexcept {
  if (!preempt(p, tick, asleep, urgent)) return false;
  if (!asleep) p->taken_when = os::now_ns();
  (asleep ? sched.revoked_blocked : sched.revoked_running).fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Whether the P's thread has used its core since the last time that this was asked in its slice. (It costs a twentieth of a
// look into /proc.)
bool has_run_since(processor* p) noexcept {
  const machine* m = p->owner.load(std::memory_order_acquire);
  if (m == nullptr) return true;
  const std::int64_t used = os::thread_cpu_ns(m->tid);
  const std::int64_t before = std::exchange(p->seen_cpu, used);
  return before != 0 && used - before > first_look / 10;
}

bool is_running(const processor* p) noexcept { return p->state.load(std::memory_order_relaxed) == processor_state::running; }

}  // namespace

std::int64_t least_slice_of_hog(std::int64_t began, std::int64_t taken) noexcept {
  const std::int64_t slice = preemption.due_slice_ns;
  return std::max(began + slice / 10, taken + slice / 2);
}

bool is_hasty() noexcept { return next_timer() != 0 || poll::any_waiter(); }

bool may_preempt() noexcept { return !preemption.off && can_revoke(); }

// When this goroutine's time is up: at the end of its slice, or, if a timer of its P is due or it is to make room for who waits
// for a socket, before that.
std::int64_t slices::end_of_slice(const processor* p, std::int64_t now) const noexcept {
  std::int64_t end = p->seen_when + current_slice();
  if (sched.idle_ps.load(std::memory_order_relaxed) != 0) return end;
  const std::int64_t least = least_slice(p, now);
  const std::int64_t due = p->timers.next_when();
  if (due != 0) end = std::min(end, std::max(due, least));
  if (is_for_socket(p)) end = std::min(end, std::max(socket_ready_since_, least));
  return end;
}

void slices::ask_to_give_way(processor* p, std::int64_t now) noexcept {
  p->asked = true;
  p->attention.store(true, std::memory_order_relaxed);
  sched.slices_ended.fetch_add(1, std::memory_order_relaxed);
  come_back_at(now + grace);
}

// Takes the P of who was asked and has not given way. One that nobody waits for only begins a new slice, as far as it shares this
// one through runnext.
void slices::end_slice(processor* p, std::uint32_t tick, std::int64_t now) noexcept {
  const std::int64_t due = p->timers.next_when();
  if (!others_wait(p) && (due == 0 || due > now) && !is_for_socket(p)) return;
  if (may_preempt()) {
    const bool taken = take_processor(p, tick, sleeps_in_kernel(p), now - end_of_slice(p, now) > patience);
    // If not, it may be in the middle of a call. And the slice that begins now must be noticed early if it may be cut short.
    if (!taken || is_hasty()) come_back_at(now + 2 * grace);
  } else if (now - p->seen_when >= 2 * preemption.slice_ns) {
    p->seen_when = now;
    redistribute(p);
  }
}

// A goroutine that others wait for, and that sleeps in the kernel in a call that nobody declared, loses its P at once. It is
// looked at after 1 and 4 milliseconds of a slice; where that has been in vain some times, after 4 only.
void slices::look_for_sleeper(processor* p, std::uint32_t tick, std::int64_t now) noexcept {
  if (!may_preempt() || !others_wait(p)) return;
  const std::int64_t ran = now - p->seen_when;
  if (ran < p->next_look) return come_back_at(p->seen_when + p->next_look);
  p->next_look *= 4;
  const bool asleep = !has_run_since(p) && sleeps_in_kernel(p);
  p->vain_looks = asleep ? 0 : p->vain_looks + 1;
  if (asleep) take_processor(p, tick, true, false);
}

void slices::watch_slice(processor* p, std::int64_t now) noexcept {
  const std::uint32_t tick = p->slices();
  if (tick != p->seen_tick || !is_running(p)) {
    p->seen_tick = tick;
    p->seen_when = now;
    p->asked = false;
    p->next_look = p->vain_looks < vain_looks_before_patience ? first_look : 4 * first_look;
    p->seen_cpu = 0;
  }
  if (!is_running(p)) return;
  const std::int64_t end = end_of_slice(p, now);
  // Where it would be in vain, asking does not take time from who waits.
  const bool hogged = was_hogged(p, now);
  any_hogged_ |= hogged;
  const std::int64_t ask = hogged ? end - grace : end;
  if (!p->asked && now >= ask) {
    if (is_for_socket(p)) p->poll_first.store(true, std::memory_order_relaxed);
    ask_to_give_way(p, now);
  } else if (p->asked && now >= end) {
    if (is_for_socket(p)) p->poll_first.store(true, std::memory_order_relaxed);
    end_slice(p, tick, now);
  } else {
    come_back_at(p->asked ? end : ask);
  }
  look_for_sleeper(p, tick, now);
}

// Whether somebody could go on since its socket is ready, if there were a P, or if somebody came to look at the network.
bool slices::is_socket_left() noexcept {
  const std::uint64_t polls = sched.polls.load(std::memory_order_relaxed);
  const bool came = std::exchange(socket_polls_, polls) != polls;
  const bool nobody_free = sched.idle_ps.load(std::memory_order_relaxed) == 0 && !somebody_spins();
  if (!nobody_free) return false;
  return is_left_in_global() || (!came && poll::any_waiter() && poll::any_event());
}

// Who runs for the longest makes room.
void slices::watch_sockets() noexcept {
  if (!is_socket_left()) {
    socket_ready_since_ = 0;
    return;
  }
  if (socket_ready_since_ == 0) socket_ready_since_ = os::now_ns();
  serves_socket_ = nullptr;
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    if (!is_running(p)) continue;
    if (serves_socket_ == nullptr || p->seen_when < serves_socket_->seen_when) serves_socket_ = p;
  }
}

std::int64_t slices::watch(std::int64_t now) noexcept {
  next_event_ = std::numeric_limits<std::int64_t>::max();
  any_hogged_ = false;
  watch_sockets();
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) watch_slice(processor_at(i), now);
  return next_event_;
}

}  // namespace weft::sched
