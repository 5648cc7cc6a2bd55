// after_func: a timer that starts a goroutine. The callback runs on a scheduler's stack, so it only spawns; a goroutine of
// its own calls the function, each time that the timer expires. Such goroutines can overlap if the timer is reset.
//
// Who owns it: the handle; the heap, while the node is pending; each spawned goroutine, which takes over the heap's share.
// The heap's lock decides between the callback and a stop or reset, so the share of one deadline goes exactly one way:
//   add      a share is made before; if the node turns out to have been pending, its former share serves the new deadline
//   stop     true: the share is given back by who stopped it
//   callback the share goes to the goroutine
// So a node is never pending, nor about to be called, without an owner; and a callback does not touch it once the
// goroutine can run. That is what heap.h asks for.
#include <weft/detail/time_channel.h>

#include <new>
#include <utility>

#include <weft/detail/record.h>

#include "arch/sanitizer.h"
#include "gmp/current.h"
#include "gmp/machine.h"
#include "sched/fork.h"
#include "sched/lifecycle.h"
#include "sched/section.h"
#include "sched/timer_blocks.h"
#include "sched/timers.h"

namespace weft::detail {
namespace {

using sched::timer_block;
using sched::timer_block_pool;
using timers::timer_node;

static_assert(sizeof(timer_node) <= sizeof(func_timer::node) && alignof(timer_node) <= 8);

timer_node& node_of(func_timer* t) noexcept { return *std::launder(reinterpret_cast<timer_node*>(t->node)); }

struct share {
  func_timer* t;
  ~share() { func_timer::release(t); }
};

void run(record* r) {
  const share own{*std::launder(reinterpret_cast<func_timer**>(r->payload))};
  own.t->call(own.t);
}
constexpr spawn_ops run_ops{&run, nullptr};

void on_timer(void* self, std::uint64_t, std::int64_t) noexcept {
  record* r = allocate_record();
  ::new (static_cast<void*>(r->payload)) func_timer*(static_cast<func_timer*>(self));
  r->ops = &run_ops;
  submit(r);
}

}  // namespace

// Each M keeps one block, which no section is needed for: who is stopped in place keeps its thread.
void* allocate_func_timer(std::size_t size) {
  if (arch::under_sanitizer || size > sizeof(timer_block)) return ::operator new(size);
  gmp::machine* m = gmp::current_machine();
  if (m != nullptr && m->spare_block != nullptr) return std::exchange(m->spare_block, nullptr);
  if (sched::in_forked_child()) sched::no_runtime_in_child();
  m = sched::enter();
  if (m == nullptr) return timer_block_pool.take_shared();
  void* const block = timer_block_pool.take(m->p->timer_blocks);
  sched::leave(m);
  return block;
}

void free_func_timer(void* p, std::size_t size) noexcept {
  if (arch::under_sanitizer || size > sizeof(timer_block)) return ::operator delete(p);
  gmp::machine* m = gmp::current_machine();
  auto* const block = static_cast<timer_block*>(p);
  if (m != nullptr && m->spare_block == nullptr) {
    m->spare_block = block;
    return;
  }
  if (sched::in_forked_child()) return;  // there is no pool; a child that exits destroys its copies of static objects
  m = sched::enter();
  if (m == nullptr) return timer_block_pool.put_shared(block);
  timer_block_pool.put(m->p->timer_blocks, block);
  sched::leave(m);
}

void init_func_timer(func_timer* t) {
  sched::ensure_started();
  ::new (static_cast<void*>(t->node)) timer_node(&on_timer, t);
}

void deinit_func_timer(func_timer* t) noexcept { node_of(t).~timer_node(); }

void start_func_timer(func_timer* t, std::int64_t when) noexcept {
  t->owners.store(2, std::memory_order_relaxed);  // published by the heap's lock
  sched::start_fresh_timer(node_of(t), when);
}

bool set_func_timer(func_timer* t, std::int64_t when) {
  sched::ensure_started();
  t->owners.fetch_add(1, std::memory_order_relaxed);
  const bool was_pending = sched::start_timer(node_of(t), when);
  if (was_pending) func_timer::release(t);
  return was_pending;
}

bool stop_func_timer(func_timer* t) noexcept {
  if (!sched::stop_timer(node_of(t))) return false;
  func_timer::release(t);
  return true;
}

}  // namespace weft::detail
