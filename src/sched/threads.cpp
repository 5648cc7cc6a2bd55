#include "sched/threads.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include <cxxabi.h>

#include "gmp/current.h"
#include "os/affinity.h"
#include "os/clock.h"
#include "os/memory.h"
#include "os/quick_clock.h"
#include "sched/idle.h"
#include "sched/last_words.h"
#include "sched/loop.h"
#include "sched/malloc_check.h"
#include "sched/overflow.h"
#include "sched/preempt_signal.h"
#include "sched/procs.h"
#include "sched/sysmon.h"
#include "trace/writer.h"

namespace weft::sched {
namespace {

// What the factory is asked for. Written under sched.lock; the word is what it sleeps on.
struct requests {
  std::int32_t spinning WEFT_GUARDED_BY(sched.lock) = 0;
  std::int32_t spare WEFT_GUARDED_BY(sched.lock) = 0;
  bool limits WEFT_GUARDED_BY(sched.lock) = false;
  base::futex_word posted{0};
  std::atomic<std::int32_t> factory_tid{0}, sysmon_tid{0};
};
constinit requests factory_requests;

// Each of a crowd of blocking calls takes a thread, and to make them one by one, each when it is missed, takes long.
constexpr std::int32_t most_at_once = 8;

struct start_parameters {
  machine* m;
  bool spinning;
};

// Somebody has counted a spinner that will not be. Whoever finds nothing to do next looks around once more.
void forget_owed_spinner() noexcept WEFT_REQUIRES(sched.lock) {
  sched.owed_spinners.fetch_sub(1, std::memory_order_relaxed);
  sched.need_spinning.store(true, std::memory_order_seq_cst);
  sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
}

// Takes an idle P as the spinner that somebody already counted; false if none is left.
bool begin_spinning(machine* m) noexcept {
  base::lock_guard guard(sched.lock);
  processor* p = sched.stopping.load(std::memory_order_relaxed) ? nullptr : take_idle_processor();
  if (p == nullptr) {
    forget_owed_spinner();
    return false;
  }
  sched.owed_spinners.fetch_sub(1, std::memory_order_relaxed);
  m->spinning = true;
  acquire(m, p);
  p->counters.spins.bump();
  return true;
}

// It is on its way to the idle list from here on: at no time does it count as neither.
void spare_is_there(machine* m) noexcept {
  base::lock_guard guard(sched.lock);
  begin_retiring(m);
  --sched.starting;
}

// An M that has no thread (any more).
void put_ended_machine(machine* m) noexcept WEFT_REQUIRES(sched.lock) {
  --sched.machines;
  m->idle_link = sched.ended_ms;
  sched.ended_ms = m;
  m->asleep.store(true, std::memory_order_release);  // [machine.asleep]
}

// The M's thread is about to end; the M waits for another one.
void retire_thread(machine* m) noexcept {
  gmp::set_current_machine(nullptr);
  drop_signal_stack(std::exchange(m->signal_stack, nullptr));
  m->ends = false;
  m->tid = 0;  // a thread of somebody else's may get it
  sched.threads.fetch_sub(1, std::memory_order_relaxed);
  base::lock_guard guard(sched.lock);
  put_ended_machine(m);
}

void* machine_thread(void* argument) {
  auto* start = static_cast<start_parameters*>(argument);
  machine* m = start->m;
  const bool spinning = start->spinning;
  delete start;
  m->asleep.store(false, std::memory_order_relaxed);
  adopt_thread(m);
  gmp::set_current_machine(m);
  name_thread("weft-m", m->id);
  if (!spinning) spare_is_there(m);
  if (!spinning || !begin_spinning(m)) sleep_machine(m);
  schedule_until_end(m);
  retire_thread(m);
  return nullptr;
}

// May block. Other processes' threads count, too, where the system limits their number: it may be a matter of a moment. 0, or an
// error number.
int try_to_create_thread(void* (*function)(void*), void* argument) {
  constexpr int attempts = 16;
  pthread_attr_t attr;
  ::pthread_attr_init(&attr);
  ::pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int error = 0;
  for (int i = 1; (error = ::pthread_create(&thread, &attr, function, argument)) == EAGAIN && i < attempts; ++i) {
    os::sleep_thread_ns(i * 1'000'000);
  }
  ::pthread_attr_destroy(&attr);
  if (error != 0) return error;
  sched.threads.fetch_add(1, std::memory_order_relaxed);
  sched.threads_created.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

[[noreturn]] void throw_no_thread(int error) { throw std::system_error(error, std::generic_category(), "weft: cannot create a thread"); }

void create_thread(void* (*function)(void*)) {
  if (const int error = try_to_create_thread(function, nullptr)) throw_no_thread(error);
}

machine* take_ended_machine() noexcept {
  base::lock_guard guard(sched.lock);
  machine* m = sched.ended_ms;
  if (m != nullptr) sched.ended_ms = m->idle_link;
  return m;
}

// An M that is counted already, as are the spinner that it is to be or the spare. If it gets no thread, none of that is counted any more.
int try_to_create_machine(bool spinning) {
  machine* m = take_ended_machine();
  if (m == nullptr) m = new_machine();
  auto parameters = std::make_unique<start_parameters>(start_parameters{m, spinning});
  const int error = try_to_create_thread(machine_thread, parameters.get());
  if (error == 0) {
    parameters.release();
    return 0;
  }
  base::lock_guard guard(sched.lock);
  put_ended_machine(m);
  if (spinning) {
    forget_owed_spinner();
  } else {
    --sched.starting;
  }
  return error;
}

// Without it the program goes on with the threads that there are; whoever needs another asks again, sysmon if nobody else.
void create_machine(bool spinning) {
  static bool warned = false;  // the factory's
  const int error = try_to_create_machine(spinning);
  if (error == 0 || std::exchange(warned, true)) return;
  base::text t;
  (t << "weft: the system gives no more threads (error " << error << "): goroutines wait for those that there are\n").print();
}

void* factory_thread(void*) {
  factory_requests.factory_tid.store(::gettid(), std::memory_order_release);
  name_thread("weft-factory", 0);
  for (;;) {
    const std::uint32_t seen = factory_requests.posted.load(std::memory_order_acquire);
    std::int32_t spinning = 0;
    std::int32_t spare = 0;
    bool limits = false;
    {
      base::lock_guard guard(sched.lock);
      std::swap(spinning, factory_requests.spinning);
      std::swap(spare, factory_requests.spare);
      std::swap(limits, factory_requests.limits);
    }
    try {
      for (; spinning > 0; --spinning) create_machine(true);
      for (; spare > 0; --spare) create_machine(false);
      if (limits) {
        os::quick_clock::look_at_kernel();
        follow_limits();
      }
      attend_last_words();
    } catch (const std::exception& e) {
      base::fatal(e.what());
    }
    base::futex_wait(factory_requests.posted, seen);
  }
}

void* sysmon_thread(void*) {
  factory_requests.sysmon_tid.store(::gettid(), std::memory_order_release);
  name_thread("weft-sysmon", 0);
  forbid_malloc_on_this_thread();
  os::ask_for_short_slices();
  sysmon_loop();
}

[[noreturn]] void too_many_threads() noexcept WEFT_REQUIRES(sched.lock) {
  base::fatal("the program needs more than ", sched.max_threads, " threads (options::max_threads)");
}

void count_new_machine() noexcept WEFT_REQUIRES(sched.lock) {
  if (++sched.machines > sched.max_threads) too_many_threads();
}

}  // namespace

machine* new_machine() noexcept {
  auto* m = new (os::map_memory((sizeof(machine) + os::page_size - 1) & ~(os::page_size - 1))) machine;
  base::lock_guard guard(sched.lock);
  m->all_link = sched.all_ms.load(std::memory_order_relaxed);
  m->id = m->all_link == nullptr ? 0 : m->all_link->id + 1;
  sched.all_ms.store(m, std::memory_order_release);
  return m;
}

void adopt_thread(machine* m) noexcept {
  if (m->tid == ::gettid() && ::pthread_equal(m->thread, ::pthread_self()) != 0) return;  // again: the next run()
  m->tid = ::gettid();
  m->thread = ::pthread_self();
  m->thread_errno = &errno;
  m->cpu_word = os::current_cpu_word();
  m->thread_exceptions = abi::__cxa_get_globals();
  m->rng = base::random(static_cast<std::uint64_t>(m->tid) * 7919);

  pthread_attr_t attr;
  void* low = nullptr;
  std::size_t size = 0;
  if (::pthread_getattr_np(m->thread, &attr) == 0) {
    ::pthread_attr_getstack(&attr, &low, &size);
    ::pthread_attr_destroy(&attr);
  }
  arch::adopt_thread_fiber(m->g0_fiber, low, size);
  m->signal_stack = use_signal_stack();
  unblock_preempt_signal();
}

void name_thread(const char* prefix, std::uint32_t number) noexcept {
  base::text t;
  t << prefix;
  if (number != 0 || t.view() == "weft-m") t << number;
  char name[16] = {};
  t.view().copy(name, sizeof name - 1);
  ::pthread_setname_np(::pthread_self(), name);
}

void wake_factory() noexcept {
  factory_requests.posted.fetch_add(1, std::memory_order_release);
  base::futex_wake(factory_requests.posted, 1);
}

bool is_service_thread(std::int32_t tid) noexcept {
  return tid == trace::writer_tid() || tid == factory_requests.factory_tid.load(std::memory_order_acquire) ||
         tid == factory_requests.sysmon_tid.load(std::memory_order_acquire);
}

void request_spinning_machine() noexcept {
  count_new_machine();
  sched.owed_spinners.fetch_add(1, std::memory_order_relaxed);
  ++factory_requests.spinning;
  wake_factory();
}

namespace {

// Ms that come to sleep before long, and can be had then.
std::int32_t soon_idle() noexcept WEFT_REQUIRES(sched.lock) {
  return sched.starting + sched.retiring.load(std::memory_order_relaxed);
}

void have_idle_machines(std::int32_t wanted) noexcept WEFT_REQUIRES(sched.lock) {
  const std::int32_t lacking = wanted - sched.idle_ms - soon_idle();
  const std::int32_t missing = std::min(lacking, sched.max_threads - sched.machines);
  if (lacking > missing) sched.threads_refused.store(true, std::memory_order_relaxed);
  if (missing <= 0) return;
  sched.machines += missing;
  sched.starting += missing;
  factory_requests.spare += missing;
  wake_factory();
}

}  // namespace

void keep_reserve() noexcept { have_idle_machines(sched.reserve); }

void ask_for_successors(const processor* p) noexcept {
  const auto waiting = static_cast<std::int32_t>(p->ring.size()) + static_cast<std::int32_t>(sched.global_size.load(std::memory_order_relaxed));
  have_idle_machines(std::clamp(waiting, sched.reserve, most_at_once));
}

void insist_on_successor() noexcept {
  if (sched.machines >= sched.max_threads && soon_idle() == 0) too_many_threads();
}

void complain_of_threads(bool fatally) noexcept {
  static bool warned = false;  // sysmon's
  base::lock_guard guard(sched.lock);
  sched.threads_refused.store(false, std::memory_order_relaxed);  // until it happens again
  if (sched.machines < sched.max_threads || soon_idle() != 0 || sched.stopping.load(std::memory_order_relaxed)) return;
  if (sched.idle_ms > (sched.stopped_first != nullptr ? 1 : 0)) return;  // one is kept back: see preempt.cpp
  if (fatally) too_many_threads();
  if (std::exchange(warned, true)) return;
  base::text t;
  t << "weft: goroutines wait, and none of those that run gives way: no more than " << sched.max_threads
    << " threads are allowed (options::max_threads), and " << sched.stopped_in_place.load(std::memory_order_relaxed)
    << " hold goroutines that were stopped while they computed\n";
  t.print();
}

void request_look_at_limits() noexcept {
  base::lock_guard guard(sched.lock);
  factory_requests.limits = true;
  wake_factory();
}

void start_threads() {
  static bool started = false;  // under the lifecycle lock
  if (started) return;
  // Here, too few threads are an error of the caller's, who can be told.
  for (int i = 0; i < 2; ++i) {
    {
      base::lock_guard guard(sched.lock);
      ++sched.machines;
      ++sched.starting;
    }
    if (const int error = try_to_create_machine(false)) throw_no_thread(error);
  }
  create_thread(factory_thread);
  create_thread(sysmon_thread);
  started = true;
}

}  // namespace weft::sched
