#include "sched/netpoll.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <weft/detail/park.h>

#include "base/delay.h"
#include "base/pause.h"
#include "os/clock.h"
#include "sched/finishing.h"
#include "sched/fork.h"
#include "sched/idle.h"
#include "sched/lifecycle.h"
#include "sched/parker.h"
#include "sched/queues.h"
#include "sched/section.h"
#include "sched/sysmon.h"
#include "sched/thrift.h"
#include "sched/timer_traffic.h"
#include "sched/timers.h"
#include "sched/tracing.h"

namespace weft::sched {
namespace {

struct io_waiter : poll::waiter {
  sched::parker parker;
};

parker& parker_of(poll::waiter* w) noexcept { return static_cast<io_waiter*>(w)->parker; }

void wake(poll::waiter* w) noexcept {
  if (w != nullptr) parker_of(w).wake();
}

// A plain thread has nobody behind it who looks for work after it has parked, and so would come to poll. While the runtime is frozen
// sysmon does.
class thread_at_socket {
 public:
  thread_at_socket() noexcept : is_one_(current_machine() == nullptr) {
    if (!is_one_) return;
    sched.threads_at_sockets.fetch_add(1, std::memory_order_seq_cst);
    if (sched.life.load(std::memory_order_seq_cst) != phase::running) {
      wake_sysmon_if_asleep();
    } else if (sched.poll_until.load(std::memory_order_seq_cst) == 0) {
      wake_processor();  // [poll.count]
    }
  }
  ~thread_at_socket() {
    if (is_one_) sched.threads_at_sockets.fetch_sub(1, std::memory_order_relaxed);
  }
  thread_at_socket(const thread_at_socket&) = delete;
  thread_at_socket& operator=(const thread_at_socket&) = delete;

 private:
  const bool is_one_;
};

void note_arrival(processor* p, goroutine* g) noexcept {
  if (p == nullptr) {
    note_readied_outside(g);
  } else {
    note_readied(p, g);
  }
}

// The next of the list that is to be readied by us, with this P or without one. Others notice by themselves that they are woken;
// threads are woken here.
goroutine* next_goroutine(poll::ready_list& list, processor* p) noexcept {
  while (poll::waiter* w = list.pop()) {
    goroutine* g = parker_of(w).take();
    if (g == nullptr) continue;
    if (g->is_thread) {
      detail::ready(g);
      continue;
    }
    gmp::transition(*g, status::waiting, status::runnable);
    note_arrival(p, g);
    return g;
  }
  return nullptr;
}

void count(const poll::events& found) noexcept {
  if (found.seen == 0) return;
  sched.poll_events.fetch_add(found.seen, std::memory_order_relaxed);
  sched.poll_readied.fetch_add(found.ready.size(), std::memory_order_relaxed);
}

void ready_here(poll::ready_list& list, processor* p) noexcept {
  for (const poll::waiter* w = list.first(); w != nullptr; w = w->next) static_cast<const io_waiter*>(w)->parker.expect_take();
  goroutine* first = next_goroutine(list, p);
  if (first == nullptr) return;
  std::uint32_t n = 1;
  for (; goroutine* g = next_goroutine(list, p); ++n) put_last(p, g);
  // [wake.submit] the first one goes to runnext, last: that is the sequentially consistent publication of them all
  if (!put_next(p, first) || n > 1) wake_processor();
}

void ready_anywhere(poll::ready_list& list) noexcept {
  std::uint64_t ticket = 0;
  while (goroutine* g = next_goroutine(list, nullptr)) ticket = put_global(g);
  if (ticket == 0) return;
  sched.socket_ticket.store(ticket, std::memory_order_relaxed);
  wake_processor();
}

constexpr std::int64_t short_absence_ns = 100'000;
constexpr std::int64_t longest_watch_ns = 100'000;

// Somebody is at the poller again.
void poller_is_back() noexcept {
  const std::int64_t left = sched.poller_left.load(std::memory_order_relaxed);
  if (left == 0) return;
  sched.poller_left.store(0, std::memory_order_relaxed);
  sched.poller_stays_away.store(os::now_ns() - left > short_absence_ns, std::memory_order_relaxed);
}

// One at a time: who comes second would find nothing but the first one's cache lines. While an M waits in the poller, it
// gets the events.
bool poll_now(poll::events& found) noexcept {
  if (!poll::any_waiter() || sched.poll_until.load(std::memory_order_relaxed) != 0) return false;
  if (sched.polling.load(std::memory_order_relaxed) || sched.polling.exchange(true, std::memory_order_acquire)) return false;
  poller_is_back();
  poll::poll(found);
  sched.polls.fetch_add(1, std::memory_order_relaxed);
  sched.polling.store(false, std::memory_order_release);
  count(found);
  return true;
}

// To come back in time the M sleeps until a little before the next timer is due, and watches clock and network for the rest. If
// all Ps are busy, there is nothing to come back for. Who wants a spinner meanwhile has one that is awake (poller_watches).
void watch_until_due(poll::events& found) noexcept {
  const std::int64_t began = os::now_ns();
  sched.poll_until.store(began, std::memory_order_seq_cst);  // no timer needs to interrupt this
  sched.poller_watches.store(true, std::memory_order_seq_cst);
  for (;;) {
    poll::poll(found);
    if (!found.ready.empty() || sched.poller_called.load(std::memory_order_relaxed)) break;
    if (sched.idle_ps.load(std::memory_order_relaxed) == 0) break;
    const std::int64_t when = next_timer();
    const std::int64_t now = os::now_ns();
    if (when <= now || now - began > longest_watch_ns) break;
    for (int i = 0; i < 8; ++i) base::cpu_pause();
  }
  sched.poller_watches.store(false, std::memory_order_seq_cst);
  looked_in_vain(os::now_ns() - began);
  sched.polls.fetch_add(1, std::memory_order_relaxed);
}

constinit timer_traffic traffic;  // touched by the M that has announced itself in poll_until

}  // namespace

int watch_descriptor(int fd, poll::descriptor& d) {
  if (in_forked_child()) no_runtime_in_child();  // before anything is done to the epoll instance, which is the parent's, too
  if (current_machine() == nullptr) ensure_poller();
  return poll::watch(fd, d);
}

int wait_ready(poll::descriptor& d, poll::direction which, std::int64_t limit) noexcept {
  poll::slot& slot = d.slots[which];
  const std::int64_t deadline = slot.deadline();
  const std::int64_t until = std::min(deadline, limit);
  if (until != poll::no_deadline && until <= os::now_ns()) return slot.is_closed() ? ECANCELED : ETIMEDOUT;
  io_waiter self;
  switch (slot.announce(self)) {
    case poll::announced::ready:
      return 0;
    case poll::announced::closed:
      return ECANCELED;
    case poll::announced::waiting:
      break;
  }
  if (slot.deadline() != deadline && slot.withdraw(self)) return 0;  // [poll.deadline] else we are woken: park() returns at once
  const thread_at_socket scope;
  if (until == poll::no_deadline) {
    self.parker.park(detail::wait_reason::io_wait);
  } else if (!self.parker.park_until(detail::wait_reason::io_wait, until)) {
    if (!slot.withdraw(self)) self.parker.await_waker();
    return slot.is_closed() ? ECANCELED : ETIMEDOUT;
  }
  return slot.is_closed() ? ECANCELED : 0;
}

void nudge(poll::descriptor& d, poll::direction which) noexcept {
  const finishing unstoppable;  // between taking the waiter and waking it
  wake(d.slots[which].nudge());
}

void alert(poll::descriptor& d, poll::direction which) noexcept {
  const finishing unstoppable;
  wake(d.slots[which].notify());
}

void set_deadline(poll::descriptor& d, poll::direction which, std::int64_t deadline_ns) noexcept {
  d.slots[which].set_deadline(deadline_ns);
  nudge(d, which);
}

void cancel_waits(poll::descriptor& d) noexcept {
  const finishing_quietly unstoppable;  // the descriptor is to be closed yet
  for (poll::slot& slot : d.slots) wake(slot.close());
}

bool poll_network(processor* p) noexcept {
  poll::events found;
  if (!poll_now(found) || found.ready.empty()) return false;
  ready_here(found.ready, p);
  return true;
}

void recall_from_poller() noexcept {
  sched.poller_recalled.store(true, std::memory_order_seq_cst);
  poll::interrupt();  // it looks again
}

waited wait_for_events(machine* m, poll::events& found) noexcept {
  forget_stopped_timers();
  if (next_timer() == 0 && !poll::any_waiter()) return waited::not_at_all;
  std::int64_t nobody = 0;
  // [timer.next], [poll.count] announce, then look again: a timer that came first meanwhile, or a plain thread that waits
  // for a descriptor, is seen here, or sees us.
  if (!sched.poll_until.compare_exchange_strong(nobody, poll::no_deadline, std::memory_order_seq_cst)) return waited::not_at_all;
  if (!retire_to_poller(m)) {
    sched.poll_until.store(0, std::memory_order_seq_cst);
    return waited::called_away;
  }
  poller_is_back();
  bool is_first_look = true, nearly_due = false;
  while (found.ready.empty() && !sched.poller_recalled.exchange(false, std::memory_order_seq_cst)) {
    const std::int64_t when = next_timer();
    const std::int64_t now = os::now_ns();
    const std::int64_t batch = std::exchange(is_first_look, false) ? traffic.batch_before(when, now, timers_run) : 0;
    if (when == 0 ? !poll::any_waiter() : when <= now) break;
    const std::int64_t lead = batch == 0 && may_look(now) ? poll::usual_delay() : 0;
    const std::int64_t until = when == 0 ? poll::no_deadline : std::max(when - lead, now + batch);
    nearly_due = until <= now;
    if (nearly_due) break;
    sched.poll_until.store(until, std::memory_order_seq_cst);
    base::delay();
    // A timer may have come between the look and the announcement, before `until`, and seen "for ever": then it has
    // interrupted us.
    poll::wait_until(until, found);
    sched.poll_until.store(poll::no_deadline, std::memory_order_seq_cst);
    sched.poll_waits.fetch_add(1, std::memory_order_relaxed);
  }
  sched.poller_called.store(false, std::memory_order_relaxed);
  begin_retiring(m);
  if (nearly_due) watch_until_due(found);
  sched.poller_left.store(os::now_ns(), std::memory_order_relaxed);
  sched.poll_until.store(0, std::memory_order_seq_cst);
  count(found);
  return waited::in_poller;
}

void ready_all(poll::ready_list& list, processor* p) noexcept {
  if (p != nullptr) {
    ready_here(list, p);
  } else {
    ready_anywhere(list);
  }
}

bool poller_is_missing() noexcept {
  return sched.poll_until.load(std::memory_order_seq_cst) == 0 && (poll::any_waiter() || next_timer() != 0);
}

void poll_for_all() noexcept {
  poll::events found;
  sched.sysmon_delivers.store(true, std::memory_order_seq_cst);
  if (poll_now(found)) {
    sched.poll_by_sysmon.fetch_add(1, std::memory_order_relaxed);
    ready_anywhere(found.ready);
  }
  sched.sysmon_delivers.store(false, std::memory_order_release);
}

}  // namespace weft::sched
