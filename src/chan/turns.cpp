#include "chan/turns.h"

#include <weft/go.h>

#include "base/delay.h"
#include "base/pause.h"
#include "chan/channel.h"
#include "sched/finishing.h"

namespace weft::chans {
namespace {

// Moves that one makes for others in a row, if those can as well. To wake one of them takes longer than most moves.
constexpr int most_for_others = 8;

std::uint32_t turn_of(const turn_waiter& w) noexcept {
  return w.sends ? turn_to_construct(w.way.lap) : turn_to_take(w.way.lap);
}

// Whose turn comes after that of `w`. A receiver that has a peer constructs what that one sends, so the peer's turn is skipped.
std::uint32_t turn_after(const turn_waiter& w) noexcept {
  if (w.sends) return turn_to_take(w.way.lap);
  return w.way.peer == nullptr ? turn_to_construct(w.way.lap + 1) : turn_to_take(w.way.lap + 1);
}

bool wait_briefly(const std::atomic<std::uint32_t>& turn, std::uint32_t wanted) noexcept {
  for (int i = 0; i < 100; ++i) {
    if (is_turn(turn, wanted)) return true;
    base::cpu_pause();
  }
  return false;
}

// With the lock held. False: it is its turn now.
bool queue_up(channel& c, turn_waiter& w) noexcept {
  std::atomic<std::uint32_t>& turn = c.turns[w.way.place];
  turn_waiter** end = &c.turn_waiters;
  while (*end != nullptr) end = &(*end)->next;
  *end = &w;
  std::uint32_t now = turn.load(std::memory_order_acquire);
  for (;;) {
    if ((now & ~turn_awaited) == turn_of(w)) {  // [chan.turn]
      *end = nullptr;
      return false;
    }
    base::delay();
    if (turn.compare_exchange_weak(now, now | turn_awaited, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
  }
}

// True: it is its turn. False: others have made its move.
[[gnu::cold, gnu::noinline]] bool wait_long(channel& c, turn_waiter& w) noexcept {
  const auto why = w.sends ? detail::wait_reason::chan_send : detail::wait_reason::chan_receive;
  for (;;) {
    if (machine* m = sched::enter_simply()) {
      w.g = m->curg;
      c.lock.lock(m);
      if (!queue_up(c, w)) {
        c.lock.unlock();
        sched::leave_quietly(m);
        return true;
      }
      sched::park_in_section(m, &release_lock, &c, why);
      return w.is_handed_on;
    }
    // A plain thread; or a goroutine whose P was taken, which waits as one: a goroutine that had to get a P first might freeze, and
    // nobody would know of it.
    const sched::finishing_quietly section;
    if (section.m() != nullptr) continue;  // it was given back
    w.g = detail::self();
    c.lock.lock(nullptr);
    if (!queue_up(c, w)) {
      c.lock.unlock();
      return true;
    }
    detail::park(&release_lock_of_thread, &c, why);
    return w.is_handed_on;
  }
}

void move_element(channel& c, const turn_waiter& w) noexcept {
  void* const place = c.place(w.way.place);
  if (w.sends) {
    c.ops->construct(place, w.value);
  } else {
    c.ops->take(w.value, place);
    if (w.way.peer != nullptr) c.ops->construct(place, w.way.peer->value);
  }
}

// Of those who are parked for this place, the one whose turn is next, if it is among them; and whether there are others.
turn_waiter* take_heir(channel& c, std::size_t place, std::uint32_t next, bool& others) noexcept {
  turn_waiter* heir = nullptr;
  for (turn_waiter** at = &c.turn_waiters; *at != nullptr && (heir == nullptr || !others);) {
    turn_waiter* const w = *at;
    if (w->way.place == place && turn_of(*w) == next) {
      heir = w;
      *at = w->next;
      continue;
    }
    others = others || w->way.place == place;
    at = &w->next;
  }
  return heir;
}

// Its move is made. Returns whose move is to be made next, by us; null: the channel may be gone.
turn_waiter* pass_on(channel& c, const turn_waiter& w) noexcept {
  std::atomic<std::uint32_t>& turn = c.turns[w.way.place];
  const std::uint32_t next = turn_after(w);
  std::uint32_t now = turn_of(w);
  base::delay();
  // [chan.turn]
  if (turn.compare_exchange_strong(now, next, std::memory_order_release, std::memory_order_relaxed)) [[likely]] return nullptr;
  const sched::finishing_quietly section;
  c.lock.lock(section.m());
  bool others = false;
  turn_waiter* const heir = take_heir(c, w.way.place, next, others);
  turn.store(next | (others ? turn_awaited : 0), std::memory_order_release);  // [chan.turn]
  c.lock.unlock();
  return heir;
}

// With more to do for others after it, so this must be no preemption point.
void ready_quietly(goroutine* g) noexcept {
  const sched::finishing_quietly section;
  detail::ready(g);
}

void serve_quietly(waiter* peer) noexcept {
  const sched::finishing_quietly section;
  serve(peer);
}

bool hand_on(turn_waiter& w) noexcept {
  if (!w.g->is_thread && !sched::begin_handing_on()) return false;
  w.is_handed_on = true;
  ready_quietly(w.g);
  return true;
}

void move_in_turn(channel& c, turn_waiter& self) noexcept {
  if (!wait_briefly(c.turns[self.way.place], turn_of(self)) && !wait_long(c, self)) return;
  move_element(c, self);
  turn_waiter* heir = pass_on(c, self);
  if (self.is_handed_on && !self.g->is_thread) sched::end_handing_on();
  if (heir == nullptr) [[likely]] {
    if (self.way.peer != nullptr) serve(self.way.peer);
    return;
  }
  if (self.way.peer != nullptr) serve_quietly(self.way.peer);
  for (int made = 0; turn_waiter* const w = heir; ++made) {
    if ((made >= most_for_others || w->g->is_thread) && hand_on(*w)) break;
    move_element(c, *w);
    heir = pass_on(c, *w);
    if (w->way.peer != nullptr) serve_quietly(w->way.peer);
    ready_quietly(w->g);
  }
  checkpoint();
}

}  // namespace

void send_through_ring(channel& c, void* value, const transfer& way) noexcept {
  turn_waiter self{.value = value, .way = way, .sends = true};
  move_in_turn(c, self);
}

void recv_through_ring(channel& c, void* to, const transfer& way) noexcept {
  turn_waiter self{.value = to, .way = way, .sends = false};
  move_in_turn(c, self);
}

}  // namespace weft::chans
