// select: exactly one of several sends, receives, timeouts and stop requests.
//
//   1. Look at every case without a lock, choose one of those that seem ready, lock its channel alone and try it.
//   2. Lock all channels (in the order of their addresses, so that two selects cannot wait for each other) and look
//   again:
//      now "none is ready" is exact, and a default or a timeout of 0 may run.
//   3. Still with all locks, stand in line at each channel; park with a hook that releases the locks.
//   4. Woken: leave the other lines, one lock after the other.
// Choosing uniformly: of two by one random bit; of more, the k-th ready one replaces the choice so far with probability 1/k.
//
// When the frame of a waiting select may go: its waiters are reachable through the queues until step 4 has removed them
// under the channels' locks. The hook of step 3 reads the frame for which channel to release next, maybe on another
// thread, while the goroutine already runs again. It never reads it after its last release; and the goroutine cannot
// leave step 4 before that, since the last channel in the order is either one that step 4 locks, or one whose lock somebody
// else had after the hook: who woke it, or who took its waiter out on finding it claimed.
#include <weft/detail/select_core.h>

#include <bit>
#include <optional>
#include <utility>

#include "chan/channel.h"
#include "chan/select_cases.h"
#include "chan/select_locks.h"
#include "chan/select_state.h"
#include "sched/finishing.h"
#include "sched/timers.h"

namespace weft::detail {

void stop_waiter::on_request::operator()() const noexcept {
  // Not left through a preemption point: who destroys the callback meanwhile blocks its thread until this has returned.
  const sched::finishing_quietly section;
  state->claim_from_outside(index);
}

}  // namespace weft::detail

namespace weft::chans {
namespace {

using detail::select_state;
using detail::wait_reason;

// All locked: begins one of the ready cases, and returns it. nobody: none is ready.
std::uint32_t begin_any(select_slot* slots, std::size_t n, machine* m, verdict& v, transfer& t) noexcept {
  for (;;) {
    choice one(m);
    for (std::uint32_t i = 0; i < n; ++i) {
      if (can_go(slots[i])) one.offer(i);
    }
    const std::uint32_t i = one.chosen();
    if (i == nobody || slots[i].kind == case_kind::stop) return i;
    v = begin(slots[i], t);
    if (v != verdict::blocked) return i;
  }
}

// All locked, in a section: one of the ready cases is done, the locks are released and the section has ended. nobody:
// none is ready, and nothing has changed.
std::uint32_t go_if_any(select_slot* slots, std::size_t n, std::uint32_t channels, machine* m) {
  verdict v{};
  transfer t;
  const std::uint32_t i = begin_any(slots, n, m, v, t);
  if (i == nobody) return nobody;
  if (slots[i].kind == case_kind::stop) {
    unlock_all(slots, channels);
    if (m != nullptr) sched::leave(m);
    return i;
  }
  unlock_all(slots, channels, &channel_of(slots[i].channel));
  finish(slots[i], m, v, t);
  return i;
}

// ---- waiting ----

wait_queue& line_of(const select_slot& s) noexcept {
  channel& c = channel_of(s.channel);
  return s.kind == case_kind::recv ? c.receivers : c.senders;
}

void enqueue(select_state& state, std::uint32_t i) noexcept {
  select_slot& s = state.slots[i];
  s.g = state.g;
  s.select = &state;
  s.index = i;
  s.dropped = false;
  line_of(s).push(s);
  channel& c = channel_of(s.channel);
  c.has_met_select.store(true, std::memory_order_relaxed);
  if (c.has_clock) [[unlikely]] waiters_changed(c);
}

// Several cases may be about the same channel: then the first in its line is the one that is chosen, and that must be any of them.
// by_address stays in order.
void shuffle_same(select_slot* slots, std::uint32_t channels, machine* m) noexcept {
  for (std::uint32_t i = 1, first = 0; i < channels; ++i) {
    if (nth_channel(slots, i) != nth_channel(slots, i - 1)) {
      first = i;
    } else {
      std::swap(slots[i].by_address, slots[first + random_below(m, i - first + 1)].by_address);
    }
  }
}

void enqueue_all(select_state& state, machine* m) noexcept {
  shuffle_same(state.slots, state.channels, m);
  for (std::uint32_t i = 0; i < state.channels; ++i) enqueue(state, state.slots[i].by_address);
}

// Once off the stack. False: a timer or a stop request was faster.
bool commit(goroutine*, void* argument) noexcept {
  auto& state = *static_cast<select_state*>(argument);
  select_slot* const slots = state.slots;
  const std::uint32_t channels = state.channels;
  std::uint32_t expected = select_state::announced;
  base::delay();
  // [select.claim] release: the claimer sees the goroutine parked
  const bool sleeps = state.word.compare_exchange_strong(expected, select_state::parked, std::memory_order_acq_rel,
                                                         std::memory_order_acquire);
  unlock_all(slots, channels);
  return sleeps;
}

bool commit_unarmed(goroutine*, void* argument) noexcept {
  auto& state = *static_cast<select_state*>(argument);
  unlock_all(state.slots, state.channels);
  return true;
}

void after_park(machine*, goroutine* from, const gmp::after_switch& self) noexcept {
  if (!commit(from, self.arg)) detail::ready(from);
}

void after_park_unarmed(machine*, goroutine* from, const gmp::after_switch& self) noexcept {
  commit_unarmed(from, self.arg);
}

bool expire(void* argument) noexcept {
  auto& state = *static_cast<select_state*>(argument);
  return state.claim(state.timeout_case);
}

// Whether a case that has not won may still stand in line. Not if its channel has died while the runtime stood still, nor if
// it was taken out by another: then the channel may be gone too.
bool is_in_line(select_slot& s) noexcept { return s.channel != nullptr && !wait_queue::was_dropped(s); }

// In a section, in which its channel cannot die; it may have before.
void leave_line(select_slot& s, machine* m) noexcept {
  if (!is_in_line(s)) [[unlikely]] return;
  channel& c = channel_of(s.channel);
  c.lock.lock(m);
  if (s.queued) line_of(s).remove(s);
  if (c.has_clock) [[unlikely]] waiters_changed(c);
  c.lock.unlock();
}

// Leaves the lines of all cases but the winner. One lock at a time: who finds a waiter of ours meanwhile cannot claim
// it.
void leave_lines(const select_state& state) noexcept {
  const std::uint32_t winner = state.winner();
  machine* m = sched::enter();
  for (std::uint32_t i = 0; i < state.channels; ++i) {
    if (const std::uint32_t k = state.slots[i].by_address; k != winner) leave_line(state.slots[k], m);
  }
  if (m != nullptr) sched::leave(m);
}

std::size_t outcome(const select_state& state) {
  const std::uint32_t winner = state.winner();
  const select_slot& s = state.slots[winner];
  if (s.kind == case_kind::send && !s.delivered) throw_send_on_closed();
  return winner;
}

wait_reason reason_for(std::size_t n) noexcept { return n == 0 ? wait_reason::select_no_cases : wait_reason::select; }

// Only channels. All locked, nothing is ready.
std::size_t wait_for_channels(select_state& state, machine* m) {
  enqueue_all(state, m);
  if (m != nullptr) {
    sched::park_in_section(m, &after_park_unarmed, &state, wait_reason::select);
  } else {
    detail::park(&commit_unarmed, &state, wait_reason::select);
  }
  leave_lines(state);
  return outcome(state);
}

// The timer and the stop callbacks of a waiting select.
class alarms {
 public:
  alarms(select_state& state, std::size_t n, const select_plan& plan) noexcept : state_(state), n_(n) {
    state.word.store(select_state::announced, std::memory_order_relaxed);
    state.timeout_case = static_cast<std::uint32_t>(plan.timeout_case);
    if (plan.timeout_ns != detail::no_deadline) {
      const std::int64_t now = detail::now_ns();
      deadline_ = plan.timeout_ns > detail::no_deadline - now ? detail::no_deadline : now + plan.timeout_ns;
    }
    if (deadline_ != detail::no_deadline && !state.g->is_thread) {
      timer_.emplace(&ring, &state);
      sched::start_fresh_timer(*timer_, deadline_);
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      if (state.slots[i].kind != case_kind::stop) continue;
      auto& s = *static_cast<stop_waiter*>(state.slots[i].value);
      if (s.token.stop_possible()) s.callback.emplace(s.token, stop_waiter::on_request{&state, i});
    }
  }
  alarms(const alarms&) = delete;
  alarms& operator=(const alarms&) = delete;
  // When this returns, nobody of them touches the select any more.
  ~alarms() {
    for (std::uint32_t i = 0; i < n_; ++i) {
      if (state_.slots[i].kind == case_kind::stop) static_cast<stop_waiter*>(state_.slots[i].value)->callback.reset();
    }
    if (timer_) sched::stop_timer_sync(*timer_);
  }

  void park(machine* m, std::size_t n) noexcept {
    if (m != nullptr) {
      sched::park_in_section(m, &after_park, &state_, reason_for(n));
    } else if (deadline_ != detail::no_deadline) {
      sched::park_thread_until(&commit, &expire, &state_, reason_for(n), deadline_);
    } else {
      detail::park(&commit, &state_, reason_for(n));
    }
  }

 private:
  static void ring(void* state, std::uint64_t, std::int64_t) noexcept {
    auto* s = static_cast<select_state*>(state);
    s->claim_from_outside(s->timeout_case);
  }

  select_state& state_;
  const std::size_t n_;
  std::int64_t deadline_ = detail::no_deadline;
  std::optional<timers::timer_node> timer_;
};

// With timeouts and stop tokens. Nothing is locked, no section.
[[gnu::noinline]] std::size_t wait_with_alarms(select_state& state, std::size_t n, const select_plan& plan) {
  alarms armed(state, n, plan);
  machine* m = sched::enter();
  lock_all(state.slots, state.channels, m);
  // As long as it is not in line, the goroutine itself decides: a ready case goes before an alarm that has gone off.
  if (const std::uint32_t i = go_if_any(state.slots, n, state.channels, m); i != nobody) return i;
  if (state.is_claimed()) {
    unlock_all(state.slots, state.channels);
    if (m != nullptr) sched::leave(m);
    return state.winner();
  }
  enqueue_all(state, m);
  armed.park(m, n);
  leave_lines(state);
  return outcome(state);
}

// ---- two channels, and nothing else: the most usual wait ----

bool is_pair(const select_slot* slots, std::size_t n) noexcept {
  return n == 2 && slots[0].channel != nullptr && slots[1].channel != nullptr && slots[0].channel != slots[1].channel;
}

void release_pair(machine*, goroutine*, const gmp::after_switch& self) noexcept {
  select_slot* const slots = static_cast<select_state*>(self.arg)->slots;
  channel* const last = nth_channel(slots, 1);
  nth_channel(slots, 0)->lock.unlock_another();
  last->lock.unlock();
}

// A goroutine. In the outermost section, nothing is locked.
std::size_t wait_for_pair(select_slot* slots, machine* m) {
  const bool turned = is_before(slots[1], slots[0]);
  slots[0].by_address = turned ? 1 : 0;
  slots[1].by_address = turned ? 0 : 1;
  nth_channel(slots, 0)->lock.lock(m);
  nth_channel(slots, 1)->lock.lock_another(m);
  if (may_go(slots[0]) || may_go(slots[1])) {
    if (const std::uint32_t i = go_if_any(slots, 2, 2, m); i != nobody) return i;
  }
  select_state state;
  state.slots = slots;
  state.g = m->curg;
  enqueue(state, 0);
  enqueue(state, 1);
  sched::park_in_section(m, &release_pair, &state, wait_reason::select);
  m = sched::enter_outermost();
  leave_line(slots[1 - state.winner()], m);
  sched::leave_outermost(m);
  return outcome(state);
}

// Nothing seemed ready, or (raced) what did was gone. In a section, nothing is locked.
[[gnu::noinline]] std::size_t select_slow(select_slot* slots, std::size_t n, select_plan& plan, machine* m,
                                          bool raced) {
  const bool waits = plan.default_case == select_plan::none && plan.timeout_ns > 0;
  const bool needs_alarms = plan.has_stop || plan.timeout_ns != detail::no_deadline;
  if (waits && !needs_alarms && m != nullptr && is_pair(slots, n)) return wait_for_pair(slots, m);

  select_state state;
  state.slots = slots;
  state.channels = order_channels(slots, n, plan);

  // A look at one channel without its lock was exact; a look at several, one after the other, was not.
  if (waits ? !needs_alarms && state.channels != 0 : raced || state.channels > 1) {
    lock_all(slots, state.channels, m);
    if (const std::uint32_t i = go_if_any(slots, n, state.channels, m); i != nobody) return i;
    if (waits) {
      state.g = m != nullptr ? m->curg : detail::self();
      return wait_for_channels(state, m);
    }
    unlock_all(slots, state.channels);
  }
  if (m != nullptr) sched::leave(m);
  if (plan.default_case != select_plan::none) return plan.default_case;
  if (!waits) return plan.timeout_case;
  if (!needs_alarms) block_for_ever(reason_for(n));
  state.g = detail::self();
  return wait_with_alarms(state, n, plan);
}

// Case i seemed ready; its channel alone is locked, unless it is a stop token. Ends the section.
[[gnu::noinline]] std::size_t do_chosen(select_slot* slots, std::size_t n, select_plan& plan, machine* m, std::uint32_t i) {
  select_slot& s = slots[i];
  transfer t;
  const verdict v = begin(s, t);
  if (v == verdict::blocked) {
    channel_of(s.channel).lock.unlock();
    return select_slow(slots, n, plan, m, true);
  }
  finish(s, m, v, t);
  return i;
}

[[gnu::noinline]] std::size_t lock_and_do(select_slot* slots, std::size_t n, select_plan& plan, machine* m, std::uint32_t i) {
  if (slots[i].kind == case_kind::stop) {
    if (m != nullptr) sched::leave(m);
    return i;
  }
  channel_of(slots[i].channel).lock.lock(m);
  return do_chosen(slots, n, plan, m, i);
}

// Any number of cases, from wherever.
[[gnu::noinline]] std::size_t select_anyhow(select_slot* slots, std::size_t n, select_plan& plan, machine* m) {
  choice one(m);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (may_go(slots[i])) one.offer(i);
  }
  if (one.chosen() == nobody) return select_slow(slots, n, plan, m, false);
  return lock_and_do(slots, n, plan, m, one.chosen());
}

// A receive from a channel that is locked, and for which the ring is no short way.
[[gnu::noinline]] std::size_t recv_past_ring(select_slot* slots, std::size_t n, select_plan& plan, machine* m, std::uint32_t i) {
  channel& c = channel_of(slots[i].channel);
  waiter* peer = c.senders.front();
  if (c.ops != nullptr || c.capacity != 0 || peer == nullptr || !claims(*peer)) return do_chosen(slots, n, plan, m, i);
  slots[i].delivered = true;
  take_over(c, m, peer, slots[i].value);
  return i;
}

}  // namespace
}  // namespace weft::chans

namespace weft::detail {

using namespace weft::chans;

// The usual case, a goroutine that receives bits from a ring, as short as it can be: what else there is gets called last, so
// that this needs no registers saved.
std::size_t select_wait(select_slot* slots, std::size_t n, select_plan& plan) {
  machine* m = sched::enter_simply();
  if (m == nullptr) [[unlikely]] return select_anyhow(slots, n, plan, sched::enter());
  if (n > 64) [[unlikely]] return select_anyhow(slots, n, plan, m);
  std::uint64_t ready = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const select_slot& s = slots[i];
    if (!is_simple(s)) [[unlikely]] return select_anyhow(slots, n, plan, m);
    if (may_go_simply(s)) ready |= std::uint64_t{1} << i;
  }
  if (ready == 0) return select_slow(slots, n, plan, m, false);
  std::uint64_t one = ready & -ready;
  if (const std::uint64_t others = ready ^ one; others != 0) {
    if ((others & (others - 1)) != 0) return select_anyhow(slots, n, plan, m);
    if ((m->rng.next() & 1) != 0) one = others;
  }
  const auto i = static_cast<std::uint32_t>(std::countr_zero(one));
  select_slot& s = slots[i];
  if (s.kind != case_kind::recv) return lock_and_do(slots, n, plan, m, i);
  channel& c = channel_of(s.channel);
  if (!c.lock.try_lock(m)) [[unlikely]] return lock_and_do(slots, n, plan, m, i);
  if (!take_few_bits(c, s.value)) return recv_past_ring(slots, n, plan, m, i);
  c.lock.unlock();
  s.delivered = true;
  return sched::leave_outermost_with(m, i);
}

}  // namespace weft::detail
