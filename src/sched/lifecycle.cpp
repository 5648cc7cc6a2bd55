#include "sched/lifecycle.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>

#include <unistd.h>

#include <weft/detail/park.h>
#include <weft/run.h>
#include <weft/runtime.h>

#include "os/clock.h"
#include "poll/poller.h"
#include "sched/debug_settings.h"
#include "sched/exit.h"
#include "sched/finishing.h"
#include "sched/fork.h"
#include "sched/idle.h"
#include "sched/locked.h"
#include "sched/last_words.h"
#include "sched/malloc_check.h"
#include "sched/overflow.h"
#include "sched/preempt.h"
#include "sched/preempt_signal.h"
#include "sched/procs.h"
#include "sched/queues.h"
#include "sched/records.h"
#include "sched/revoke.h"
#include "sched/section.h"
#include "sched/spawn.h"
#include "sched/stack.h"
#include "sched/steal.h"
#include "sched/switch.h"
#include "sched/sysmon.h"
#include "sched/threads.h"
#include "sched/world.h"

namespace weft::sched {

constinit scheduler sched;

namespace {

// Around starting, stopping and resizing. Held by plain threads, and by goroutines in a blocking call.
std::mutex lifecycle_lock;
bool run_active = false;
std::atomic<bool> following{false};

void check_options(const options& o) {
  if (o.procs < 0 || o.procs > max_procs_limit) {
    throw std::invalid_argument("weft::options::procs must be from 0 to " + std::to_string(max_procs_limit));
  }
  if (o.stack_size > max_stack) throw std::invalid_argument("weft::options::stack_size is more than 1 GiB");
  if (o.max_threads < 1) throw std::invalid_argument("weft::options::max_threads must be at least 1");
}

void prepare_once() {
  static bool done = false;
  if (done) return;
  if (const int error = poll::open_poller()) throw std::system_error(error, std::generic_category(), "weft: cannot open the poller");
  done = true;
  read_debug_settings();
  watch_malloc();
  install_overflow_handler();
  prepare_revoking();
  watch_forks();
  install_preempt_handler();
  install_quit_handler();
  prepare_last_words();
  os::quick_clock::look_at_kernel();
}

void apply_stack_size(const options& o) noexcept {
  const std::size_t wanted = o.stack_size == 0 ? default_stack : o.stack_size;
  if (stack_class(wanted) == stack_class(default_stack_size())) return;
  for (int i = 0; i < sched.procs.load(std::memory_order_acquire); ++i) flush_stacks(processor_at(i));
  set_default_stack_size(wanted);
}

// Under lifecycle_lock; the world is stopped, or there is none yet.
void bring_up(const options& o) {
  if (in_forked_child()) no_runtime_in_child();
  prepare_once();
  const procs_choice choice = choose_procs(o.procs);  // reads files: who is stopped in place may hold what that needs, as long as the world stands
  start_threads();
  if (sched.life.load(std::memory_order_relaxed) == phase::running) {
    stop_world();
  }
  apply_stack_size(o);
  {
    base::lock_guard guard(sched.lock);
    sched.max_threads = o.max_threads;
  }
  following = choice.follow;
  sched.coarse_now.store(os::now_ns(), std::memory_order_relaxed);  // who parks before sysmon's first round does it now
  start_world(choice.procs);
  sched.life.store(phase::running, std::memory_order_release);
  allow_handing_on();
}

// Under lifecycle_lock, running. Returns the number before.
int resize_world(int procs) noexcept {
  const int before = sched.procs.load(std::memory_order_acquire);
  if (procs != before) {
    stop_world();
    start_world(procs);
  }
  return before;
}

void freeze() noexcept {
  let_handed_on_end();
  stop_world();
  sched.life.store(phase::frozen, std::memory_order_release);
  let_stopped_go();
  wake_sysmon_if_asleep();  // plain threads that wait for sockets are its business from here on
}

// Under lifecycle_lock. When the world was last stopped for a look at it, and for how long.
struct {
  std::int64_t ended = 0, took = 0;
} last_look;

// Looks that follow each other at once would leave it no time to move at all: between two of them it gets as much as the
// one before took.
void let_world_run() noexcept {
  constexpr std::int64_t most = 100'000'000;
  const std::int64_t left = last_look.ended + std::min(last_look.took, most) - os::now_ns();
  if (left > 0) os::sleep_thread_ns(left);
}

// run()'s goroutine and the thread that waits for it.
struct main_frame {
  void (*body)(void*);
  void* argument;
  std::exception_ptr error;
  machine* home;            // of the thread that waits
  bool ended_here = false;  // on that thread, having been locked to it
};

void after_main(machine* m, goroutine* from, const gmp::after_switch& self) noexcept {
  put_stack(m->p, from);
  auto* frame = static_cast<main_frame*>(self.arg);
  if (m == frame->home) {
    frame->ended_here = true;
  } else {
    frame->home->park.wake();
  }
}

// The main goroutine does not end like the others: who waits in run() must not go on before it is off its stack.
[[noreturn]] void end_main(main_frame* frame) noexcept {
  sched.run_thread.store(run_thread_none, std::memory_order_release);
  goroutine* self = current_machine()->curg;
  destroy_locals(self);
  machine* m = enter();
  self->is_main = false;
  if (self->lock_depth != 0) end_locked(m, self);
  retire(m, self);
  m->after = {&after_main, self, nullptr, frame};
  switch_to_g0(m, self, true);
  base::fatal("the main goroutine was resumed after its end");
}

void run_main_body(record* r) {
  auto* frame = *reinterpret_cast<main_frame**>(r->payload);
  detail::self()->is_main = true;
  try {
    frame->body(frame->argument);
  } catch (const goroutine_exit&) {
    detail::self()->is_main = false;
    sched.main_exited.store(true, std::memory_order_release);
    throw;  // the others go on, and run() never returns
  } catch (...) {
    frame->error = std::current_exception();
  }
  end_main(frame);
}

constexpr detail::spawn_ops main_ops{&run_main_body, nullptr};

void submit_main(main_frame* frame) noexcept {
  record* r = take_shared_record();
  new (r->payload) main_frame*(frame);
  r->ops = &main_ops;
  detail::submit(r);
}

}  // namespace

void start_with_defaults() { weft::start(); }

bool is_following() noexcept { return following.load(std::memory_order_relaxed); }

int change_procs(int procs) {
  std::lock_guard guard(lifecycle_lock);
  if (sched.life.load(std::memory_order_relaxed) != phase::running) return 0;
  following = false;
  return resize_world(procs);
}

void change_procs_if_following(int procs) {
  // Whoever holds the lock now is about to choose the number himself, or ends the program.
  std::unique_lock guard(lifecycle_lock, std::try_to_lock);
  if (!guard || !is_following() || sched.life.load(std::memory_order_relaxed) != phase::running) return;
  resize_world(procs);
}

void with_world_stopped(void (*f)(void*) noexcept, void* argument) {
  std::lock_guard guard(lifecycle_lock);
  if (sched.life.load(std::memory_order_relaxed) != phase::running) return f(argument);
  let_world_run();
  const std::int64_t began = os::now_ns();
  stop_world();
  f(argument);
  start_world(sched.procs.load(std::memory_order_acquire));
  last_look.ended = os::now_ns();
  last_look.took = last_look.ended - began;
}

}  // namespace weft::sched

namespace weft {

namespace detail {

void run_main(const options& o, void (*body)(void*), void* argument) {
  using namespace weft::sched;
  if (current_machine() != nullptr) throw std::logic_error("weft::run: called from a goroutine");
  check_options(o);
  main_frame frame{body, argument, nullptr, nullptr};
  {
    std::lock_guard guard(lifecycle_lock);
    if (run_active) throw std::logic_error("weft::run: another run() is under way");
    bring_up(o);
    run_active = true;
    frame.home = adopt_main_thread();
    sched::sched.main_exited.store(false, std::memory_order_relaxed);
    sched::sched.run_thread.store(run_thread_starting, std::memory_order_release);
    submit_main(&frame);
  }
  // From here on this thread only waits; unless the main goroutine has ended already.
  std::int32_t starting = run_thread_starting;
  sched::sched.run_thread.compare_exchange_strong(starting, ::gettid(), std::memory_order_acq_rel, std::memory_order_relaxed);
  serve_main(frame.home, frame.ended_here);
  await_the_end();
  {
    std::lock_guard guard(lifecycle_lock);
    freeze();
    run_active = false;
  }
  if (debug.leaks) report_leaks();
  if (frame.error) std::rethrow_exception(std::move(frame.error));
}

}  // namespace detail

void start(options o) {
  using namespace weft::sched;
  check_options(o);
  if (sched::sched.life.load(std::memory_order_acquire) == phase::running) return;
  std::lock_guard guard(lifecycle_lock);
  if (sched::sched.life.load(std::memory_order_relaxed) != phase::running) bring_up(o);
}

void shutdown() {
  using namespace weft::sched;
  if (current_machine() != nullptr) throw std::logic_error("weft::shutdown: called from a goroutine");
  await_the_end();
  std::lock_guard guard(lifecycle_lock);
  if (run_active) throw std::logic_error("weft::shutdown: run() is under way");
  if (sched::sched.life.load(std::memory_order_relaxed) == phase::running) freeze();
}

}  // namespace weft
