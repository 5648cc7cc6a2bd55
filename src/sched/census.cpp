#include "sched/census.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <sys/mman.h>

#include "gmp/current.h"
#include "os/clock.h"
#include "os/memory.h"
#include "sched/join.h"
#include "sched/lifecycle.h"
#include "sched/parker.h"
#include "sched/stack.h"

namespace weft::sched {
namespace {

constexpr std::size_t room_to_grow = 4096;  // stacks that may come into being between our count and the stop; and lenders, of which a stack has few

os::stack_bounds bounds_of(const goroutine& g) noexcept {
  return {reinterpret_cast<std::uintptr_t>(g.stack_low), reinterpret_cast<std::uintptr_t>(&g)};
}

const machine* machine_of(const goroutine& g) noexcept {
  const machine* m = sched.all_ms.load(std::memory_order_acquire);
  while (m != nullptr && m->curg != &g) m = m->all_link;
  return m;
}

// With the world stopped nobody has a P: whoever runs on is detached, in user code or in a blocking call.
status simplified(const goroutine& g) noexcept {
  const status s = g.state.load(std::memory_order_acquire);
  switch (s) {
    case status::timed:
    case status::preempted:
      return status::runnable;
    case status::detached: {
      const machine* m = machine_of(g);
      return m != nullptr && m->revoked.load(std::memory_order_relaxed) == gmp::p_in_call ? status::syscall : status::running;
    }
    default:
      return s;
  }
}

void set_body(census::member& m, const record* body) noexcept {
  if (body != nullptr) {
    m.creator = body->creator;
    m.creator_pc = reinterpret_cast<std::uintptr_t>(body->creator_pc);
  }
  const std::string_view name = gmp::name_of(body);
  m.name_size = static_cast<std::uint8_t>(std::min(name.size(), sizeof m.name));
  std::memcpy(m.name, name.data(), m.name_size);
}

}  // namespace

census::census() : code_(os::code_map::read()), capacity_(2 * read_stack_stats().total + room_to_grow) {
  // Address space only: what is not used is never touched.
  bytes_ = capacity_ * (sizeof(member) + max_frames * sizeof(std::uintptr_t));
  memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  members_ = static_cast<member*>(memory_);
  words_ = reinterpret_cast<std::uintptr_t*>(members_ + capacity_);
}

census::~census() { ::munmap(memory_, bytes_); }

void census::take() {
  with_world_stopped([](void* self) noexcept { static_cast<census*>(self)->gather(); }, this);
}

void census::take_from_anywhere() {
  if (gmp::current_machine() == nullptr) return take();
  // A goroutine cannot stop the world that it is part of: a thread does it, while the goroutine waits.
  parker self;
  caller_ = detail::self();
  caller_frame_count_ = os::unwind(code_, os::here(), bounds_of(*caller_), caller_frames_, max_frames);
  std::thread([this, &self]() noexcept {
    take();
    self.wake();
  }).detach();
  self.park(detail::wait_reason::none);
}

void census::gather() noexcept {
  now_ = os::now_ns();
  for_each_goroutine([this](const goroutine& g) { add(g); });
  for (int i = 0; i < sched.procs.load(std::memory_order_acquire); ++i) {
    const processor* p = processor_at(i);
    if (const runnable* r = p->runnext.load(std::memory_order_acquire)) add_unborn(r);
    p->ring.for_each([this](const runnable* r) { add_unborn(r); });
  }
  base::lock_guard guard(sched.lock);
  sched.global.for_each([this](void* r) { add_unborn(static_cast<const runnable*>(r)); });
}

void census::add(const goroutine& g) noexcept {
  if (g.state.load(std::memory_order_acquire) == status::dead) return;
  if (count_ == capacity_) {
    complete_ = false;
    return;
  }
  member& m = members_[count_++];
  m.id = g.id;
  m.state = &g == caller_ ? status::running : simplified(g);
  m.reason = g.reason;
  m.locked = g.lock_depth != 0;
  m.waiting_since = g.waiting_since.load(std::memory_order_relaxed);
  set_body(m, g.body);
  m.first_word = static_cast<std::uint32_t>(words_used_);
  walk(g, m);
  words_used_ += m.frames;
  for_each_lender(g, [&](const gmp::lender& l) { add_lender(g, l); });
}

void census::add_lender(const goroutine& g, const gmp::lender& l) noexcept {
  if (count_ == capacity_) {
    complete_ = false;
    return;
  }
  member& m = members_[count_++];
  m = {};
  m.id = l.id;
  m.state = status::waiting;
  m.reason = l.reason;
  m.waiting_since = l.waiting_since;
  set_body(m, l.body);
  m.first_word = static_cast<std::uint32_t>(words_used_);
  const os::machine_state from{reinterpret_cast<std::uintptr_t>(l.context.pc), reinterpret_cast<std::uintptr_t>(l.context.sp),
                               reinterpret_cast<std::uintptr_t>(l.context.fp)};
  m.frames = static_cast<std::uint32_t>(os::unwind(code_, from, bounds_of(g), words_ + words_used_, max_frames));
  words_used_ += m.frames;
}

void census::walk(const goroutine& g, member& m) noexcept {
  std::uintptr_t* pcs = words_ + words_used_;
  if (&g == caller_) {
    std::copy_n(caller_frames_, caller_frame_count_, pcs);
    m.frames = static_cast<std::uint32_t>(caller_frame_count_);
    return;
  }
  if (m.state == status::running || g.context.pc == nullptr) return;
  const os::machine_state from{reinterpret_cast<std::uintptr_t>(g.context.pc), reinterpret_cast<std::uintptr_t>(g.context.sp),
                               reinterpret_cast<std::uintptr_t>(g.context.fp)};
  m.frames = static_cast<std::uint32_t>(os::unwind(code_, from, bounds_of(g), pcs, max_frames));
}

void census::add_unborn(const runnable* r) noexcept {
  if (r->ops == nullptr) return;  // a goroutine with a stack: counted already
  const auto* rec = static_cast<const record*>(r);
  const auto pc = reinterpret_cast<std::uintptr_t>(rec->creator_pc);
  for (std::size_t i = 0; i < unborn_count_; ++i) {
    if (unborn_[i].creator_pc != pc || unborn_[i].creator != rec->creator) continue;
    ++unborn_[i].count;
    return;
  }
  if (unborn_count_ == max_creators) {
    complete_ = false;
    return;
  }
  unborn_[unborn_count_++] = {pc, rec->creator, 1};
}

}  // namespace weft::sched
