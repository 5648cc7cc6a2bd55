#include "sched/idle.h"

#include <utility>

#include <sched.h>

#include "base/delay.h"
#include "gmp/current.h"
#include "os/affinity.h"
#include "os/clock.h"
#include "sched/find_work.h"
#include "sched/netpoll.h"
#include "sched/placement.h"
#include "sched/preempt.h"
#include "sched/queues.h"
#include "sched/sysmon.h"
#include "sched/threads.h"
#include "sched/timers.h"
#include "sched/transit.h"

namespace weft::sched {
namespace {

constexpr std::int64_t soon_ns = 100'000;

void set_idle_bit(const processor* p, bool idle) noexcept {
  auto& word = sched.idle_mask[p->id / 64];
  const std::uint64_t bit = std::uint64_t{1} << (p->id % 64);
  if (idle) {
    word.fetch_or(bit, std::memory_order_relaxed);
  } else {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

}  // namespace

void note_readied_outside(goroutine* g) noexcept {
  if (sched.readied_outside.fetch_add(1, std::memory_order_relaxed) % gmp::timed_every == gmp::timed_every - 1) gmp::begin_timing(*g);
  trace_ready_outside(g);
}

void release_to_idle(machine* m) noexcept { put_idle_processor(std::exchange(m->p, nullptr)); }

void put_idle_processor(processor* p) noexcept {
  if (p->has_work()) base::fatal("P ", p->id, " goes idle with goroutines in its queue");
  p->owner.store(nullptr, std::memory_order_relaxed);
  p->state.store(processor_state::idle, std::memory_order_relaxed);
  p->idle_link = sched.idle_p_list;
  sched.idle_p_list = p;
  set_idle_bit(p, true);
  base::delay();
  sched.idle_ps.fetch_add(1, std::memory_order_seq_cst);  // [wake.idle] announce, then (the caller) look again
}

processor* take_idle_processor() noexcept {
  processor* p = sched.idle_p_list;
  if (p != nullptr) take_this_idle_processor(p);
  return p;
}

bool take_this_idle_processor(processor* p) noexcept {
  processor** at = &sched.idle_p_list;
  while (*at != nullptr && *at != p) at = &(*at)->idle_link;
  if (*at == nullptr) return false;
  *at = p->idle_link;
  set_idle_bit(p, false);
  sched.idle_ps.fetch_sub(1, std::memory_order_seq_cst);
  if (sched.sysmon_asleep) wake_sysmon();
  return true;
}

void acquire(machine* m, processor* p) noexcept {
  m->p = p;
  m->last_p.store(p->id, std::memory_order_relaxed);
  if (is_traced(p)) [[unlikely]] trace_thread(p, m);
  p->owner.store(m, std::memory_order_release);  // sysmon looks at the M through it
  p->state.store(processor_state::running, std::memory_order_release);
}

// The link to the one that is to be taken: the first of the list, but if one of the first few is as wished, that one.
static machine** choose_idle_machine(core_wish wish) noexcept WEFT_REQUIRES(sched.lock) {
  machine** first = &sched.idle_m_list;
  if (wish == core_wish::none) return first;
  const int here = ::sched_getcpu();
  machine** at = first;
  for (int i = 0; i < 8 && *at != nullptr; ++i, at = &(*at)->idle_link) {
    if (((*at)->last_cpu == here) == (wish == core_wish::here)) return at;
  }
  return first;
}

machine* take_idle_machine(core_wish wish) noexcept {
  machine** at = choose_idle_machine(wish);
  machine* m = *at;
  if (m == nullptr) return nullptr;
  *at = m->idle_link;
  --sched.idle_ms;
  keep_reserve();
  return m;
}

void put_idle_machine(machine* m) noexcept {
  m->last_cpu = ::sched_getcpu();
  m->idle_link = sched.idle_m_list;
  sched.idle_m_list = m;
  ++sched.idle_ms;
}

// Where goroutines wait for descriptors, the other cores may be busy with whoever is at the other end: the kernel knows better.
static core_wish wish_of_waker() noexcept {
  const machine* m = gmp::current_machine();
  const bool computes = m != nullptr && m->p != nullptr && m->p->last_wait != detail::wait_reason::io_wait;
  return computes ? core_wish::elsewhere : core_wish::none;
}

// There was none that had been elsewhere. It sleeps still, and is ours to wake; sleep_machine() undoes this.
static void keep_off_its_last_core(machine* m) noexcept { m->kept_off = os::keep_off(m->tid, m->last_cpu, m->cpus); }

// For the next M that comes by the lock, and for the one that watches in the poller, or is about to.
static void leave_word() noexcept WEFT_REQUIRES(sched.lock) {
  sched.spinner_wanted = true;
  sched.poller_called.store(true, std::memory_order_relaxed);
}

void wake_processor_slow() noexcept {
  std::int32_t nobody = 0;
  if (!sched.spinning.compare_exchange_strong(nobody, 1, std::memory_order_seq_cst)) return;
  const core_wish wish = wish_of_waker();
  machine* woken = nullptr;
  bool rotated = false;
  bool placed = false;
  {
    base::lock_guard guard(sched.lock);
    // While the world stops, whoever starts it again looks at all queues.
    processor* p = sched.stopping.load(std::memory_order_relaxed) ? nullptr : take_idle_processor();
    if (p == nullptr) {
      // Between our look and now somebody took the last idle P. The spinner that we pretended to be may have kept
      // another M from spinning: it must not go to sleep on that account.
      sched.need_spinning.store(true, std::memory_order_seq_cst);
      sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
    } else if (sched.poller_watches.load(std::memory_order_seq_cst)) {
      put_idle_processor(p);
      leave_word();
    } else if ((woken = take_idle_machine(wish)) != nullptr) {
      woken->spinning = true;
      p->counters.spins.bump();
      placed = wish == core_wish::elsewhere && woken->last_cpu == ::sched_getcpu();
      woken->placed.store(placed, std::memory_order_relaxed);
      send_on_its_way(p, woken);
    } else if (goroutine* g = take_stopped()) {
      // No thread at hand, but one whose goroutine is stopped in place (and may hold what the factory needs).
      sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
      p->begin_slice();
      woken = hand_to_own_machine(g, p);
      rotated = true;
    } else {
      // No thread at hand. Whoever comes to sleep next, or one that the factory makes, takes an idle P itself (as the
      // spinner that is counted already).
      put_idle_processor(p);
      const bool is_last = sched.machines >= sched.max_threads;
      const bool is_in_poller = is_last && sched.poll_until.load(std::memory_order_seq_cst) != 0;
      if (sched.retiring.load(std::memory_order_relaxed) != 0 || (is_last && sched.starting != 0) || is_in_poller) {
        leave_word();
        if (is_in_poller) recall_from_poller();
      } else {
        request_spinning_machine();
      }
    }
  }
  if (woken == nullptr) return;
  if (placed) keep_off_its_last_core(woken);
  sched.machine_wakeups.fetch_add(1, std::memory_order_relaxed);
  woken->park.wake();
  if (rotated && any_work()) wake_processor();  // that one looks for nothing, and meanwhile we seemed to
}

void become_spinning(machine* m) noexcept {
  m->spinning = true;
  sched.spinning.fetch_add(1, std::memory_order_seq_cst);
  sched.need_spinning.store(false, std::memory_order_seq_cst);
  m->p->counters.spins.bump();
}

// For an M that has left the poller for a timer: whether another is needed before it is back, which most often is soon.
// [wake.idle] This is the look again of who was counted as a spinner.
static bool successor_is_needed() noexcept {
  if (any_work() || sched.poller_stays_away.load(std::memory_order_relaxed)) return true;
  const std::int64_t timer = next_timer();
  return timer != 0 && timer - os::now_ns() < soon_ns;
}

void end_spinning(machine* m) noexcept {
  m->spinning = false;
  m->back_for_timer = false;
  if (sched.spinning.fetch_sub(1, std::memory_order_seq_cst) <= 0) base::fatal("the count of spinning Ms fell below zero");
}

void stop_spinning_with_work(machine* m) noexcept {
  const bool for_timer = m->back_for_timer;
  end_spinning(m);
  if (for_timer && !successor_is_needed()) return;
  // There may be more work where this came from, and until now its submitters saw us spinning and woke nobody.
  wake_processor();
}

namespace {

// Under the lock, at the end of an M's retirement, and whenever one comes to sleep: it is the spinner that somebody
// wanted. True: it has a P.
bool serve_as_spinner(machine* m) noexcept WEFT_REQUIRES(sched.lock) {
  if (!sched.spinner_wanted) return false;
  sched.spinner_wanted = false;
  processor* p = sched.stopping.load(std::memory_order_relaxed) ? nullptr : take_idle_processor();
  if (p == nullptr) {
    sched.need_spinning.store(true, std::memory_order_seq_cst);
    sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
    return false;
  }
  acquire(m, p);
  m->spinning = true;
  p->counters.spins.bump();
  return true;
}

void end_retiring(machine* m) noexcept WEFT_REQUIRES(sched.lock) {
  if (!std::exchange(m->retiring, false)) return;
  if (sched.retiring.fetch_sub(1, std::memory_order_relaxed) <= 0) base::fatal("the count of retiring Ms fell below zero");
}

}  // namespace

void begin_retiring(machine* m) noexcept {
  m->retiring = true;
  sched.retiring.fetch_add(1, std::memory_order_relaxed);
}

bool regain(machine* m) noexcept {
  base::lock_guard guard(sched.lock);
  if (serve_as_spinner(m)) {
    end_retiring(m);
    keep_reserve();  // whoever counted on us
    return true;
  }
  if (sched.stopping.load(std::memory_order_relaxed)) return false;
  processor* p = take_idle_processor();
  if (p == nullptr) return false;
  end_retiring(m);
  keep_reserve();
  acquire(m, p);
  return true;
}

bool retire_to_poller(machine* m) noexcept {
  base::lock_guard guard(sched.lock);
  end_retiring(m);
  if (serve_as_spinner(m)) return false;
  keep_reserve();  // whoever counted on us
  return true;
}

void sleep_machine(machine* m) noexcept {
  for (;;) {
    {
      base::lock_guard guard(sched.lock);
      end_retiring(m);
      if (serve_as_spinner(m)) return;
      put_idle_machine(m);
    }
    sched.idle_sleeps.fetch_add(1, std::memory_order_relaxed);
    sleep_with_nothing(m);
    m->hauls = {};  // whatever it is woken for is something else
    arrived_on_core(m);
    if (processor* p = arrive(m)) return acquire(m, p);
    begin_retiring(m);
  }
}

}  // namespace weft::sched
