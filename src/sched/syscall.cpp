#include "sched/syscall.h"

#include <weft/blocking.h>

#include "base/delay.h"
#include "os/clock.h"
#include "sched/find_work.h"
#include "sched/fork.h"
#include "sched/idle.h"
#include "sched/netpoll.h"
#include "sched/queues.h"
#include "sched/revoke.h"
#include "sched/section.h"
#include "sched/switch.h"
#include "sched/tracing.h"
#include "sched/thrift.h"
#include "sched/transit.h"
#include "sched/threads.h"

namespace weft::sched {
namespace {

// Calls whose P was taken raise a P's score, quick ones lower it; from here on a P is handed over as soon as a call
// begins, instead of after a sysmon tick.
constexpr std::uint32_t known_to_block = 4;
constexpr std::uint32_t highest_score = 8;

void after_loss(machine* m, goroutine* from, const gmp::after_switch&) noexcept {
  if (m->locked_g == nullptr) begin_retiring(m);  // where no more threads are allowed, this one can be had
  put_global(from);
  wake_processor();
}

// The P it had, if nobody has found work for it, else any idle one.
processor* take_processor_for(machine* m) noexcept WEFT_REQUIRES(sched.lock) {
  if (sched.stopping.load(std::memory_order_relaxed)) return nullptr;
  if (m->p != nullptr && take_this_idle_processor(m->p)) return m->p;
  processor* p = take_idle_processor();
  return p != nullptr ? p : take_from_transit();
}

// The call is known to block: the P goes on at once.
void hand_off_now(goroutine* g) noexcept {
  machine* woken = nullptr;
  {
    base::lock_guard guard(sched.lock);
    if (sched.idle_ms == 0) {
      ask_for_successors(g->on_machine->p);
      return;  // sysmon will see to it
    }
    processor* p = take_from_call(g);
    if (p == nullptr) return;
    p->counters.calls_handed_over.bump();
    woken = hand_off(p, core_wish::here);
  }
  finish_hand_off(woken);
}

}  // namespace

goroutine* goroutine_in_call(const processor* p) noexcept {
  const machine* m = p->owner.load(std::memory_order_acquire);
  goroutine* g = m != nullptr ? m->curg.get() : nullptr;
  return g != nullptr && g->state.load(std::memory_order_acquire) == status::syscall ? g : nullptr;
}

processor* take_from_call(goroutine* g) noexcept {
  if (!gmp::try_transition(*g, status::syscall, status::detached)) return nullptr;
  // The goroutine cannot go on without the lock that we hold, so its M stands still.
  processor* p = g->on_machine->p;
  p->owner.store(nullptr, std::memory_order_relaxed);
  p->counters.calls_retaken.bump();
  return p;
}

// Whether who gets this P finds something to do at once.
static bool is_needed(const processor* p) noexcept {
  if (p->has_work() || sched.global_size.load(std::memory_order_relaxed) != 0 || p->poll_first.load(std::memory_order_relaxed)) return true;
  const std::int64_t timer = p->timers.next_when();
  return timer != 0 && timer <= os::now_ns();
}

machine* hand_off(processor* p, core_wish wish) noexcept {
  const bool has_work = is_needed(p);
  bool spinning = false;
  if (!has_work) {
    // Nobody else looks for work, so somebody with this P should, if there is something to expect.
    std::int32_t nobody = 0;
    spinning = sched.idle_ps.load(std::memory_order_seq_cst) == 0 && may_look(os::now_ns()) &&
               sched.spinning.compare_exchange_strong(nobody, 1, std::memory_order_seq_cst);
    if (!spinning) {
      put_idle_processor(p);
      return nullptr;
    }
  }
  sched.handoffs.fetch_add(1, std::memory_order_relaxed);
  machine* const awake = take_robbed();
  machine* m = awake != nullptr ? awake : take_idle_machine(wish);
  m->spinning = spinning;
  if (spinning) p->counters.spins.bump();
  // First: one that is awake takes the P without the lock as soon as it is there, and then looks whether it was announced.
  if (!spinning) announce_transit(m);
  base::delay();
  send_on_its_way(p, m);
  return m == awake ? nullptr : m;
}

void finish_hand_off(machine* woken) noexcept {
  if (woken != nullptr) return woken->park.wake();
  // [wake.idle] the P went idle: the second look, as in find_work.cpp
  if (any_work() || poller_is_missing()) wake_processor();
}

machine* regain_after_loss(machine* m) noexcept {
  goroutine* g = m->curg;
  {
    base::lock_guard guard(sched.lock);
    processor* p = take_processor_for(m);
    m->p = p;
    if (p != nullptr) {
      acquire(m, p);
      p->begin_slice();
      gmp::transition(*g, status::detached, status::running);
      if (is_traced(p)) [[unlikely]] trace_start(p, g);
      return m;
    }
  }
  gmp::transition(*g, status::detached, status::runnable);
  trace_ready_outside(g);
  m->after = {&after_loss, g, nullptr, nullptr};
  return switch_to_g0(m, g);
}

// In a section, on an M that is marked as being in a call.
machine* return_from_call(machine* m) noexcept {
  goroutine* g = m->curg;
  processor* p = m->p;
  m->revoked.store(gmp::p_attached, std::memory_order_relaxed);
  base::delay();
  if (gmp::try_transition(*g, status::syscall, status::running)) {
    if (p->long_calls > 0) --p->long_calls;
    if (is_traced(p)) [[unlikely]] trace_start(p, g);
    return m;
  }
  m = regain_after_loss(m);
  if (m->p->long_calls < highest_score) m->p->long_calls += 2;
  return m;
}

machine* regain_processor(machine* m) noexcept {
  if (m->revoked.load(std::memory_order_relaxed) == gmp::p_forked) no_runtime_in_child();
  if (m->revoked.load(std::memory_order_relaxed) == gmp::p_in_call) return return_from_call(m);
  {
    base::lock_guard guard(sched.lock);
    if (m->revoked.load(std::memory_order_relaxed) == gmp::p_attached) return m;  // given back, or never taken
    no_longer_loose(m, gmp::p_attached);
  }
  return regain_after_loss(m);
}

}  // namespace weft::sched

namespace weft::detail {

using namespace weft::sched;

void begin_blocking() noexcept {
  machine* m = enter();
  if (m == nullptr) return;
  if (m->p->attention.load(std::memory_order_relaxed)) m = attend(m);
  processor* p = m->p;
  goroutine* g = m->curg;
  const bool hand_over = p->long_calls >= known_to_block;
  p->calls.store(p->calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  g->on_machine = m;
  // Where it went into the call, for dumps: nobody else can tell while it is in there.
  g->context = arch::callers_context();
  g->waiting_since.store(sched::sched.coarse_now.load(std::memory_order_relaxed), std::memory_order_relaxed);
  m->revoked.store(gmp::p_in_call, std::memory_order_relaxed);
  if (is_traced(p)) [[unlikely]] trace_stop(p, g, trace::why::in_call);
  gmp::transition(*g, status::running, status::syscall);  // [call.begin] from here on the P may go
  if (hand_over) hand_off_now(g);
  m->locks.store(0, std::memory_order_release);
}

void end_blocking() noexcept {
  machine* m = current_machine();
  // A plain thread; or a call into weft has ended the region already, maybe on another thread.
  if (m == nullptr || m->revoked.load(std::memory_order_relaxed) != gmp::p_in_call) return;
  m->locks.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  leave(return_from_call(m));
}

}  // namespace weft::detail
