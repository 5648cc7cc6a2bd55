// select: exactly one of several sends, receives, timeouts and stop requests.
//
//   1. Look at every case without a lock, choose one of those that seem ready, lock its channel alone and try it.
//   2. Lock all channels (in the order of their addresses, so that two selects cannot wait for each other) and look
//   again:
//      now "none is ready" is exact, and a default or a timeout of 0 may run.
//   3. Still with all locks, stand in line at each channel; park with a hook that releases the locks.
//   4. Woken: leave the other lines, one lock after the other.
// Choosing uniformly: the k-th ready case replaces the choice so far with probability 1/k.
//
// When the frame of a waiting select may go: its waiters are reachable through the queues until step 4 has removed them
// under the channels' locks. The hook of step 3 reads the frame for which channel to release next, maybe on another
// thread, while the goroutine already runs again. It never reads it after its last release; and the goroutine cannot
// leave step 4 before that, since the last channel in the order is either one that step 4 locks, or the one on which it
// was woken, by somebody who had the lock after the hook.
#include <weft/detail/select_core.h>

#include <functional>
#include <optional>
#include <utility>

#include "base/random.h"
#include "chan/channel.h"
#include "chan/select_state.h"
#include "sched/timers.h"

namespace weft::detail {

void stop_waiter::on_request::operator()() const noexcept {
  // Not left through a preemption point: who destroys the callback meanwhile blocks its thread until this has returned.
  sched::machine* m = sched::enter();
  state->claim_from_outside(index);
  if (m != nullptr) sched::leave_quietly(m);
}

}  // namespace weft::detail

namespace weft::chans {
namespace {

using detail::case_kind;
using detail::select_plan;
using detail::select_slot;
using detail::select_state;
using detail::stop_waiter;
using detail::wait_reason;

constexpr std::uint32_t nobody = 0xffffffff;

[[gnu::noinline]] std::uint32_t random_below_on_thread(std::uint32_t bound) noexcept {
  thread_local base::random generator(reinterpret_cast<std::uintptr_t>(&generator));
  return generator.below(bound);
}

std::uint32_t random_below(machine* m, std::uint32_t bound) noexcept {
  return m != nullptr ? m->rng.below(bound) : random_below_on_thread(bound);
}

// Chooses one of the cases offered to it, each with the same probability.
class choice {
 public:
  explicit choice(machine* m) noexcept : m_(m) {}
  void offer(std::uint32_t i) noexcept {
    if (++offered_ == 1 || random_below(m_, offered_) == 0) chosen_ = i;
  }
  std::uint32_t chosen() const noexcept { return chosen_; }  // nobody: none was offered

 private:
  machine* const m_;
  std::uint32_t offered_ = 0;
  std::uint32_t chosen_ = nobody;
};

bool stop_requested(const select_slot& s) noexcept {
  return static_cast<stop_waiter*>(s.value)->token.stop_requested();
}

// Without locks: "no" is exact for this channel alone, "yes" is a guess.
[[gnu::always_inline]] inline bool may_go(const select_slot& s) noexcept {
  switch (s.kind) {
    case case_kind::recv:
      return s.channel != nullptr && channel_of(s.channel).may_recv();
    case case_kind::send:
      return s.channel != nullptr && channel_of(s.channel).may_send();
    case case_kind::stop:
      return stop_requested(s);
    case case_kind::inert:
      break;
  }
  return false;
}

// With the channel locked. A "yes" can still be spoilt by who claims the peer's select on another channel.
bool can_go(const select_slot& s) noexcept {
  if (!may_go(s)) return false;
  if (s.kind == case_kind::stop) return true;
  channel& c = channel_of(s.channel);
  if (c.closed.load(std::memory_order_relaxed)) return true;
  const std::size_t count = c.count.load(std::memory_order_relaxed);
  if (s.kind == case_kind::recv) return count != 0 || c.senders.has_open() || (c.clock != nullptr && is_due(c));
  return count < c.capacity || c.receivers.has_open();
}

[[gnu::always_inline]] inline verdict begin(select_slot& s, transfer& t) noexcept {
  channel& c = channel_of(s.channel);
  return s.kind == case_kind::recv ? begin_recv(c, s.value, t) : begin_send(c, s.value, t);
}

// A goroutine receives, only this channel is locked: if it is one of the usual cases, does it and ends the section.
[[gnu::always_inline]] inline bool recv_shortly(channel& c, machine* m, void* to) noexcept {
  if (take_few_bits(c, to)) {
    c.lock.unlock();
    sched::leave_outermost(m);
    return true;
  }
  waiter* peer = c.senders.front();
  if (!is_plain(peer) || c.ops != nullptr || c.capacity != 0) return false;
  take_over(c, m, peer, to);
  return true;
}

// begin() said v; only this channel is locked. Ends the section.
[[gnu::always_inline]] inline void finish(select_slot& s, machine* m, verdict v, const transfer& t) {
  channel& c = channel_of(s.channel);
  s.delivered = v == verdict::done;
  if (v == verdict::done)
    return s.kind == case_kind::recv ? finish_recv(c, m, s.value, t) : finish_send(c, m, s.value, t);
  c.lock.unlock();
  if (m != nullptr) sched::leave(m);
  if (s.kind == case_kind::send) throw_send_on_closed();
}

// ---- all channels of a select ----

channel* nth_channel(select_slot* slots, std::uint32_t i) noexcept {
  return static_cast<channel*>(slots[slots[i].by_address].channel);
}

std::uint32_t count_channels(const select_slot* slots, std::size_t n) noexcept {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += slots[i].channel != nullptr;
  return count;
}

bool is_before(const select_slot& a, const select_slot& b) noexcept { return std::less<>()(a.channel, b.channel); }

void order_few(select_slot* slots, std::size_t n) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (slots[i].channel == nullptr) continue;
    std::uint32_t at = count++;
    for (; at > 0 && is_before(slots[i], slots[slots[at - 1].by_address]); --at)
      slots[at].by_address = slots[at - 1].by_address;
    slots[at].by_address = i;
  }
}

// A heap sort of its own is shorter than the iterator that std::sort would need for indices that lie in the slots.
void sift_down(select_slot* slots, std::uint32_t root, std::uint32_t size) noexcept {
  const auto before = [slots](std::uint32_t a, std::uint32_t b) {
    return is_before(slots[slots[a].by_address], slots[slots[b].by_address]);
  };
  for (std::uint32_t child; (child = 2 * root + 1) < size; root = child) {
    if (child + 1 < size && before(child, child + 1)) ++child;
    if (!before(root, child)) return;
    std::swap(slots[root].by_address, slots[child].by_address);
  }
}

void order_many(select_slot* slots, std::size_t n) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (slots[i].channel != nullptr) slots[count++].by_address = i;
  }
  for (std::uint32_t i = count / 2; i-- > 0;) sift_down(slots, i, count);
  for (std::uint32_t size = count; size-- > 1;) {
    std::swap(slots[0].by_address, slots[size].by_address);
    sift_down(slots, 0, size);
  }
}

// Fills in by_address, and returns how many slots have a channel.
std::uint32_t order_channels(select_slot* slots, std::size_t n, select_plan& plan) noexcept {
  const std::uint32_t count = count_channels(slots, n);
  if (plan.ordered != count) n <= 16 ? order_few(slots, n) : order_many(slots, n);
  plan.ordered = count;
  return count;
}

void lock_all(select_slot* slots, std::uint32_t channels) noexcept {
  channel* previous = nullptr;
  for (std::uint32_t i = 0; i < channels; ++i) {
    channel* c = nth_channel(slots, i);
    if (previous == nullptr) {
      c->lock.lock();
    } else if (c != previous) {
      c->lock.lock_another();
    }
    previous = c;
  }
}

// Releases all but `kept`. The frame is not read after the last release, see the head of the file.
void unlock_all(select_slot* slots, std::uint32_t channels, const channel* kept = nullptr) noexcept {
  if (channels == 0) return;
  channel* c = nth_channel(slots, 0);
  for (std::uint32_t i = 1; i < channels; ++i) {
    channel* next = nth_channel(slots, i);
    if (next == c) continue;
    if (c != kept) c->lock.unlock_another();
    c = next;
  }
  if (kept == nullptr) {
    c->lock.unlock();
  } else if (c != kept) {
    c->lock.unlock_another();
  }
}

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

void enqueue_all(select_state& state, std::size_t n) noexcept {
  for (std::uint32_t i = 0; i < n; ++i) {
    select_slot& s = state.slots[i];
    if (s.channel == nullptr) continue;
    s.g = state.g;
    s.select = &state;
    s.index = i;
    channel& c = channel_of(s.channel);
    (s.kind == case_kind::recv ? c.receivers : c.senders).push(s);
    if (c.clock != nullptr) waiters_changed(c);
  }
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

// Leaves the lines of all cases but the winner. One lock at a time: who finds a waiter of ours meanwhile cannot claim
// it.
void leave_lines(const select_state& state) noexcept {
  select_slot* const slots = state.slots;
  const std::uint32_t winner = state.winner();
  machine* m = sched::enter();
  for (std::uint32_t i = 0, end; i < state.channels; i = end) {
    channel* c = nth_channel(slots, i);
    for (end = i + 1; end < state.channels && nth_channel(slots, end) == c;) ++end;
    if (c == nullptr || (end == i + 1 && slots[i].by_address == winner)) continue;
    c->lock.lock();
    for (std::uint32_t k = i; k < end; ++k) {
      select_slot& s = slots[slots[k].by_address];
      if (s.queued) (s.kind == case_kind::recv ? c->receivers : c->senders).remove(s);
    }
    if (c->clock != nullptr) waiters_changed(*c);
    c->lock.unlock();
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
std::size_t wait_for_channels(select_state& state, std::size_t n, machine* m) {
  enqueue_all(state, n);
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
  lock_all(state.slots, state.channels);
  // As long as it is not in line, the goroutine itself decides: a ready case goes before an alarm that has gone off.
  if (const std::uint32_t i = go_if_any(state.slots, n, state.channels, m); i != nobody) return i;
  if (state.is_claimed()) {
    unlock_all(state.slots, state.channels);
    if (m != nullptr) sched::leave(m);
    return state.winner();
  }
  enqueue_all(state, n);
  armed.park(m, n);
  leave_lines(state);
  return outcome(state);
}

// Nothing seemed ready, or (raced) what did was gone. In a section, nothing is locked.
[[gnu::noinline]] std::size_t select_slow(select_slot* slots, std::size_t n, select_plan& plan, machine* m,
                                          bool raced) {
  select_state state;
  state.slots = slots;
  state.channels = order_channels(slots, n, plan);
  const bool waits = plan.default_case == select_plan::none && plan.timeout_ns > 0;
  const bool needs_alarms = plan.has_stop || plan.timeout_ns != detail::no_deadline;

  // A look at one channel without its lock was exact; a look at several, one after the other, was not.
  if (waits ? !needs_alarms && state.channels != 0 : raced || state.channels > 1) {
    lock_all(slots, state.channels);
    if (const std::uint32_t i = go_if_any(slots, n, state.channels, m); i != nobody) return i;
    if (waits) {
      state.g = m != nullptr ? m->curg : detail::self();
      return wait_for_channels(state, n, m);
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

}  // namespace
}  // namespace weft::chans

namespace weft::detail {

using namespace weft::chans;

std::size_t select_wait(select_slot* slots, std::size_t n, select_plan& plan) {
  machine* m = sched::enter();
  choice one(m);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (may_go(slots[i])) one.offer(i);
  }
  const std::uint32_t i = one.chosen();
  if (i == nobody) return select_slow(slots, n, plan, m, false);
  select_slot& s = slots[i];
  if (s.kind == case_kind::stop) {
    if (m != nullptr) sched::leave(m);
    return i;
  }
  channel& c = channel_of(s.channel);
  c.lock.lock();
  if (s.kind == case_kind::recv && m != nullptr && recv_shortly(c, m, s.value)) {
    s.delivered = true;
    return i;
  }
  transfer t;
  const verdict v = begin(s, t);
  if (v == verdict::blocked) {
    c.lock.unlock();
    return select_slow(slots, n, plan, m, true);
  }
  finish(s, m, v, t);
  return i;
}

}  // namespace weft::detail
