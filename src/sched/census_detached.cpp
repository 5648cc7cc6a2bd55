// The stacks of goroutines that go on while the world stands: in their own code (computing, or asleep in the kernel in
// a call that nobody declared) and in blocking calls.
//
// A thread that sleeps is not disturbed: the kernel tells where it went to sleep, and is asked again after the walk,
// since a thread that woke up meanwhile has changed the stack under it. All others are asked to stand still, all at
// once, for on a busy machine each waits for a core of its own before it can answer; then they are walked over and let
// go one after the other. Whoever does not answer in time is listed without a stack; one in a blocking call at least
// with the frames from which it went into that.
//
// A goroutine that comes into the runtime while all this goes on finds no P and becomes runnable. It is then in the
// global queue, which is looked at last, with the stack that it has there.
#include <algorithm>

#include "os/clock.h"
#include "os/thread_state.h"
#include "sched/census.h"
#include "sched/preempt_signal.h"
#include "sched/stand_still.h"

namespace weft::sched {
namespace {

constexpr std::int64_t patience_ns = 250'000'000;           // with one thread
constexpr std::int64_t patience_in_all_ns = 1'000'000'000;  // the world stands all the while
constexpr int looks_at_sleeper = 3;

}  // namespace

void census::walk_detached() noexcept {
  if (runner_count_ == 0) return;
  find_machines();
  const bool may_ask = has_preempt_handler();
  for (std::size_t i = 0; i < runner_count_; ++i) {
    runner& r = runners_[i];
    if (r.m == nullptr) continue;
    r.asked = is_standing(r.m) || (!walk_if_asleep(r) && may_ask);
    if (r.asked) ask_to_stand(r.m);
  }
  const std::int64_t last = os::now_ns() + patience_in_all_ns;
  for (std::size_t i = 0; i < runner_count_; ++i) {
    runner& r = runners_[i];
    if (r.asked) {
      if (await_standing(r.m, std::min(last, os::now_ns() + patience_ns))) walk_standing(r);
      let_go(r.m);
    }
    if (r.entry->frames == 0) walk_last_resort(r);
  }
}

// From the Ms to their goroutines: the other way round it would be a search through all Ms for each.
void census::find_machines() noexcept {
  std::sort(runners_, runners_ + runner_count_, [](const runner& a, const runner& b) { return a.g < b.g; });
  for (machine* m = sched.all_ms.load(std::memory_order_acquire); m != nullptr; m = m->all_link) {
    runner* r = runner_of(m->curg);
    if (r == nullptr) continue;
    r->m = m;
    if (m->revoked.load(std::memory_order_relaxed) == gmp::p_in_call) r->entry->state = status::syscall;
  }
}

census::runner* census::runner_of(const goroutine* g) const noexcept {
  runner* const end = runners_ + runner_count_;
  runner* const r = std::lower_bound(runners_, end, g, [](const runner& a, const goroutine* b) { return a.g < b; });
  return r != end && r->g == g ? r : nullptr;
}

// True: it sleeps, or nobody knows what it does, and is better left alone, whether that gave a stack or not. On a stack
// of the runtime's own, g0 or the handler's, it does not sleep in a call of the program's, and may be asked.
bool census::walk_if_asleep(runner& r) noexcept {
  const std::int32_t tid = r.m->tid;
  for (int i = 0; i < looks_at_sleeper; ++i) {
    const os::thread_view before = os::look_at_thread(tid);
    if (before.now != os::thread_view::asleep) return before.now == os::thread_view::unknown;
    if (before.sp == 0) return true;
    if (!is_on_its_stack(*r.g, before.sp)) return false;
    walk_from({before.pc, before.sp, 0}, *r.g, *r.entry);
    set_name(*r.entry, r.g->body);
    if (os::look_at_thread(tid) == before) return true;
    forget_walk(*r.entry);
  }
  return false;
}

void census::walk_standing(runner& r) noexcept {
  const os::machine_state& at = r.m->position;
  if (r.m->curg != r.g || !is_on_its_stack(*r.g, at.sp)) return;
  set_name(*r.entry, r.g->body);
  walk_from(at, *r.g, *r.entry);
}

// It did not answer. It may have fallen asleep since then; and where it went into a blocking call is known. Or it has come into
// the runtime, and is found in the global queue, or missed on its way there.
void census::walk_last_resort(runner& r) noexcept {
  if (r.m == nullptr || r.m->curg != r.g) {
    if (r.g->state.load(std::memory_order_acquire) == status::runnable) r.entry->state = status::runnable;
    return;
  }
  if (r.asked && walk_if_asleep(r) && r.entry->frames != 0) return;
  if (r.entry->state != status::syscall) return;
  set_name(*r.entry, r.g->body);
  walk(*r.g, *r.entry);
}

// Under sched.lock, which it was queued under: it is off its stack.
void census::walk_if_it_ran(const goroutine& g) noexcept {
  const runner* r = runner_of(&g);
  if (r == nullptr || r->entry->frames != 0) return;
  r->entry->state = status::runnable;
  set_name(*r->entry, g.body);
  walk(g, *r->entry);
}

}  // namespace weft::sched
