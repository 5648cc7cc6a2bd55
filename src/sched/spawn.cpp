#include "sched/spawn.h"

#include <cxxabi.h>
#include <stdexcept>
#include <typeinfo>

#include <weft/detail/record.h>
#include <weft/future.h>
#include <weft/go.h>

#include "sched/exit.h"
#include "sched/fork.h"
#include "sched/idle.h"
#include "sched/lifecycle.h"
#include "sched/locked.h"
#include "sched/queues.h"
#include "sched/records.h"
#include "sched/section.h"
#include "sched/stack.h"
#include "sched/switch.h"
#include "sched/tracing.h"

namespace weft::sched {
namespace {

constexpr std::uint64_t id_batch = 64;

// The record becomes this goroutine's body. The goroutine is dead before and runnable afterwards.
void bind(processor* p, goroutine* g, record* r) noexcept {
  g->body = r;
  g->id = new_id(p);
  gmp::transition(*g, status::dead, status::runnable);
  if (is_traced(p)) [[unlikely]] trace_birth(p, g);
}

std::size_t wanted_stack(const record* r) noexcept {
  if (r->ops->extras == nullptr) [[likely]] return 0;
  return r->ops->extras(r)->stack_size;
}

goroutine* bind_to(processor* p, goroutine* g, record* r) noexcept {
  arch::scrub_stack(g->stack_low, static_cast<std::size_t>(reinterpret_cast<std::byte*>(g) - g->stack_low));
  arch::prepare_context(g->context, g, g);  // the stack ends where the goroutine object begins
  g->saved = 0;
  bind(p, g, r);
  p->counters.stacks_bound.bump();
  return g;
}

// Hook: the goroutine has left its stack for good.
void after_exit(machine* m, goroutine* from, const gmp::after_switch&) noexcept { put_stack(m->p, from); }

}  // namespace

void reserve_ids(processor* p) noexcept {
  p->next_id = sched.next_goroutine_id.fetch_add(id_batch, std::memory_order_relaxed);
  p->last_id = p->next_id + id_batch;
}

void retire(machine* m, goroutine* g) noexcept {
  processor* p = m->p;
  if (is_traced(p)) [[unlikely]] trace_stop(p, g, trace::why::ended);
  put_record(p, g->body);
  g->body = nullptr;
  p->counters.finished.bump();
  gmp::transition(*g, status::running, status::dead);
}

WEFT_NEVER_RETURNS void run_body(goroutine* g) {  // the main goroutine's does not
  try {
    g->body->ops->run(g->body);
  } catch (const goroutine_exit&) {
    // exit_goroutine(): its frames are unwound.
  }
}

goroutine* bind_cached(processor* p, record* r) noexcept {
  if (p->stack_count == 0 || r->ops->extras != nullptr) return nullptr;
  return bind_to(p, p->stacks[--p->stack_count], r);
}

goroutine* goroutine_of(processor* p, runnable* r) noexcept {
  if (!is_record(r)) return static_cast<goroutine*>(r);
  auto* rec = static_cast<record*>(r);
  const std::size_t size = wanted_stack(rec);
  return bind_to(p, size == 0 ? take_stack(p) : take_stack_of(size), rec);
}

// As leave() and enter(). Not inlined under TSan, which does not see what weft_goroutine_main does: it would miss that
// whoever takes the P from the goroutine's own code, or looks at the goroutine with the world stopped, comes after the one
// and before the other.
#ifdef WEFT_TSAN
#define WEFT_SEEN_BY_TSAN [[gnu::noinline]]
#else
#define WEFT_SEEN_BY_TSAN [[gnu::always_inline]] inline
#endif
WEFT_SEEN_BY_TSAN static void leave_for_body(machine* m) noexcept { leave(m); }
WEFT_SEEN_BY_TSAN static machine* enter_after_body() noexcept { return enter(); }

// What a stack does from its first instruction on: one goroutine after the other, as long as the next in line has not
// run yet. Such a one needs no switch at all.
extern "C" __attribute__((visibility("hidden"))) WEFT_NEVER_RETURNS void weft_goroutine_main(goroutine* g) {
  arch::after_switch(g->fiber);
  machine* m = current_machine();
  complete_switch(m);
  for (;;) {
    leave_for_body(m);
    run_body(g);
    destroy_locals(g);
    m = enter_after_body();
    retire(m, g);
    if (g->lock_depth != 0) [[unlikely]] {
      end_locked(m, g);
      m->after = {&after_exit, g, nullptr, nullptr};
      switch_to_g0(m, g, true);
    }

    runnable* next = pick_fast(m->p);
    if (next != nullptr && is_record(next) && next->ops->extras == nullptr && has_default_stack(g)) {
      bind(m->p, g, static_cast<record*>(next));
      if (is_traced(m->p)) [[unlikely]] trace_start(m->p, g);
      gmp::transition(*g, status::runnable, status::running);
      m->p->counters.stacks_inherited.bump();
      *m->thread_errno = 0;
      continue;
    }
    m->after = {&after_exit, g, nullptr, nullptr};
    if (next != nullptr && can_switch_to(next)) {
      switch_to(m, g, static_cast<goroutine*>(next), true);
    } else {
      m->handoff = next;
      switch_to_g0(m, g, true);
    }
    base::fatal("goroutine ", g->id, " was resumed after its end");
  }
}

}  // namespace weft::sched

namespace weft::detail {

using namespace weft::sched;

record* allocate_record() {
  machine* m = enter();
  if (m == nullptr) {
    if (in_forked_child()) no_runtime_in_child();
    ensure_started();
    return take_shared_record();
  }
  record* r = take_record(m->p);
  r->creator = m->curg != nullptr ? m->curg->id.get() : 0;  // without get() both sides would become an int
  leave(m);
  return r;
}

// In a section: so not while the world stands, when others look at names.
void forget_extras(record* r) noexcept {
  const section unstoppable;
  r->ops = nullptr;
}

void release_record(record* r) noexcept {
  machine* m = enter();
  if (m == nullptr) return put_shared_record(r);
  put_record(m->p, r);
  leave(m);
}

void check(const go_options& o) {
  if (o.stack_size > max_stack) throw std::invalid_argument("weft::go_options::stack_size is more than 1 GiB");
}

// Not inlined: the return address is where go() was called.
[[gnu::noinline]] void submit(record* r) noexcept {
  r->creator_pc = __builtin_return_address(0);
  machine* m = enter();
  if (m == nullptr) {
    r->creator = 0;
    sched::sched.created_outside.fetch_add(1, std::memory_order_relaxed);
    trace_spawn_outside(r);
    put_global(r);
    wake_processor();
    return;
  }
  processor* p = m->p;
  p->counters.created.bump();
  if (m->curg != nullptr) m->curg->may_have_children = true;
  if (is_traced(p)) [[unlikely]] trace_spawn(p, r);
  submit_next(p, r);
  leave(m);
}

}  // namespace weft::detail

namespace weft::detail {

bool handling_goroutine_exit() noexcept {
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type != nullptr && *type == typeid(sched::goroutine_exit);
}

}  // namespace weft::detail

namespace weft {

void exit_goroutine() {
  if (!in_goroutine()) throw std::logic_error("weft::exit_goroutine: not in a goroutine");
  throw sched::goroutine_exit{};
}

std::uint64_t goroutine_id() {
  const gmp::machine* m = gmp::current_machine();
  return m == nullptr || m->curg == nullptr ? 0 : m->curg->id.get();  // as above: an int is too short
}

bool in_goroutine() { return goroutine_id() != 0; }

}  // namespace weft
