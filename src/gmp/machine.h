// M: an OS thread that runs goroutines.
//
// `locks` counts how deep this thread is in the runtime. While it is not zero, nobody takes the thread's P away and no
// signal stops its goroutine: a stretch of code in which m->p is stable. It is 1 on the scheduler's own stack (g0).
// Entering is "locks first, then look at revoked"; whoever wants the P sets revoked, makes every thread pass a barrier
// (membarrier), and then looks at locks: one of the two sees the other. See sched/section.h and sched/world.cpp.
//
// Where an M is:
//   idle      in sched's idle list, asleep on `park`, no P
//   spinning  has a P, looks for work, counted in sched.spinning
//   running   has a P and a goroutine (curg)
//   blocked   in a blocking call: its P may be taken
//   loose     runs, or blocks in, its goroutine's own code, and its P was taken (revoked == p_revoked)
//   stopped   asleep in the signal handler, its goroutine stopped in place (revoked == p_stopped)
//   locked    serves one goroutine only (locked_g), asleep on `park` while that one does not run
#pragma once

#include <atomic>
#include <cstdint>

#include <pthread.h>

#include "arch/context.h"
#include "arch/sanitizer.h"
#include "base/backoff.h"
#include "base/futex.h"
#include "base/note.h"
#include "base/peekable.h"
#include "base/random.h"
#include "gmp/goroutine.h"
#include "gmp/hauls.h"
#include "os/affinity.h"
#include "os/machine_state.h"
#include "os/quick_clock.h"

namespace weft::gmp {

struct processor;
struct timer_block;

// What must happen once the goroutine that was switched away from is off its stack. Runs on the same thread, first
// thing on the other stack.
struct after_switch {
  void (*run)(machine* m, goroutine* from, const after_switch& self) = nullptr;  // null: nothing
  goroutine* from = nullptr;
  bool (*commit)(goroutine*, void*) = nullptr;
  void* arg = nullptr;
};

// machine::revoked: what the goroutine on this M finds when it enters the runtime.
enum : std::uint32_t {
  p_attached = 0,  // its P is there
  p_revoked = 1,   // the P was taken while it ran user code (sched.lock decides), or somebody is about to
  p_in_call = 2,   // it is in a blocking call; its state tells whether the P is still there
  p_stopped = 3,   // it is stopped in place, in the handler; who wakes it brings a P, or lets it go on without (p_revoked)
  p_forked = 4,    // this is the child of a fork: there is no runtime here
};

struct alignas(64) machine {
  std::atomic<std::int32_t> locks{1};
  std::atomic<std::uint32_t> revoked{p_attached};
  processor* p = nullptr;
  base::peekable<goroutine> curg;         // null on g0
  int* thread_errno = nullptr;            // this thread's, so that nobody asks for the address across a switch
  void* thread_exceptions = nullptr;      // its exception_state, aligned as the C++ runtime likes
  after_switch after;
  detail::runnable* handoff = nullptr;    // what g0 runs next, chosen by who switched to it

  arch::context g0{};
  [[no_unique_address]] arch::fiber g0_fiber;

  std::int64_t works_since = 0;           // when it last found something to do (sched/thrift.h)
  gmp::hauls hauls;                       // what it was worth
  base::backoff kept_from_timers;         // since it came too late for those of another P, again and again (sched/timers.cpp)
  std::int64_t kept_from_timers_when = 0; // for the last time
  std::atomic<std::int32_t> last_p{0};    // the id of the P that it has or had: for the goroutine, in no section
  os::quick_clock clock;                  // what deadlines are counted from
  void* signal_stack = nullptr;           // that weft has made for its thread
  timer_block* spare_block = nullptr;     // of a timer that is gone (time/func_timer.cpp)
  bool back_for_timer = false;  // from the poller, as a spinner
  base::peekable_value<bool> spinning{false};
  bool retiring = false;        // counted in sched.retiring
  bool ends = false;            // its goroutine ended while locked to it: the thread goes too
  // What whoever wakes it hands to it, under sched.lock or because it is locked to the goroutine that is next. The M takes it
  // without the lock, unless somebody takes it back first: see sched/transit.h.
  std::atomic<processor*> next_p{nullptr};

  processor* take_next_processor() noexcept { return next_p.exchange(nullptr, std::memory_order_acq_rel); }
  base::peekable<goroutine> locked_g;  // the only goroutine that this thread serves
  base::note park;
  machine* idle_link = nullptr;
  int last_cpu = -1;            // when it last went to sleep
  bool kept_off = false;        // by who woke it: it may use `cpus` again
  std::atomic<bool> placed{false};  // who wakes it chooses its core. Set before next_p, until it has arrived
  os::cpu_mask cpus;
  const std::uint32_t* cpu_word = nullptr;  // where the kernel says on which core its thread is
  machine* all_link = nullptr;
  base::random rng{0};
  std::uint32_t id = 0;
  base::peekable_value<std::int32_t> tid{0};
  // On `park`, or without a thread, and with nothing in its hands; P and goroutine are handed over before it is woken. Not
  // in the poller. [machine.asleep]
  std::atomic<bool> asleep{false};
  pthread_t thread{};
  // For who wants to look at the goroutine's stack while it runs: sched/stand_still.h
  base::futex_word stand{0};
  os::machine_state position{};
};

}  // namespace weft::gmp
