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

bool is_detached(status s) noexcept { return s == status::detached || s == status::running; }

status simplified(status s) noexcept {
  switch (s) {
    case status::timed:
      return status::runnable;
    case status::detached:
      return status::running;
    default:
      return s;
  }
}

os::machine_state state_of(const arch::context& c) noexcept {
  return {reinterpret_cast<std::uintptr_t>(c.pc), reinterpret_cast<std::uintptr_t>(c.sp), reinterpret_cast<std::uintptr_t>(c.fp)};
}

void set_creator(census::member& m, const record* body) noexcept {
  if (body == nullptr) return;
  m.creator = body->creator;
  m.creator_pc = reinterpret_cast<std::uintptr_t>(body->creator_pc);
}

}  // namespace

// Of a name that is too long the beginning, not ending inside of a letter (UTF-8). A goroutine that goes on must stand still
// while this is called: at its end it deletes the name.
void census::set_name(member& m, const record* body) noexcept {
  constexpr std::string_view cut = "...";
  std::string_view name = gmp::name_of(body), end;
  if (name.size() > sizeof m.name) {
    name = gmp::beginning_of(name, sizeof m.name - cut.size());
    end = cut;
  }
  std::memcpy(m.name, name.data(), name.size());
  std::memcpy(m.name + name.size(), end.data(), end.size());
  m.name_size = static_cast<std::uint8_t>(name.size() + end.size());
}

census::census() : code_(os::code_map::read()), capacity_(2 * read_stack_stats().total + room_to_grow) {
  // Address space only: what is not used is never touched.
  bytes_ = capacity_ * (sizeof(member) + sizeof(runner) + max_frames * sizeof(std::uintptr_t));
  memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  members_ = static_cast<member*>(memory_);
  runners_ = reinterpret_cast<runner*>(members_ + capacity_);
  words_ = reinterpret_cast<std::uintptr_t*>(runners_ + capacity_);
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
  walk_detached();
  for (int i = 0; i < sched.procs.load(std::memory_order_acquire); ++i) {
    const processor* p = processor_at(i);
    if (const runnable* r = p->runnext.load(std::memory_order_acquire)) add_queued(*r);
    p->ring.for_each([this](const runnable* r) { add_queued(*r); });
  }
  base::lock_guard guard(sched.lock);
  sched.global.for_each([this](void* r) { add_queued(*static_cast<const runnable*>(r)); });
}

void census::add(const goroutine& g) noexcept {
  const status state = g.state.load(std::memory_order_acquire);  // [g.state]
  if (state == status::dead) return;
  if (count_ == capacity_) {
    complete_ = false;
    return;
  }
  member& m = members_[count_++];
  m.id = g.id;
  m.is_caller = &g == caller_;
  m.state = m.is_caller ? status::running : simplified(state);
  m.reason = g.reason;
  m.locked = g.lock_depth != 0;
  m.waiting_since = g.waiting_since.load(std::memory_order_relaxed);
  set_creator(m, g.body);
  m.frames = 0;
  m.name_size = 0;
  if (is_detached(state) && !(m.is_caller && caller_frame_count_ != 0)) {
    runners_[runner_count_++] = {&g, &m};
  } else {
    set_name(m, g.body);
    walk(g, m);
  }
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
  set_creator(m, l.body);
  set_name(m, l.body);
  if (l.context.pc != nullptr) walk_from(state_of(l.context), g, m);
}

void census::walk(const goroutine& g, member& m) noexcept {
  if (m.is_caller) {
    m.first_word = static_cast<std::uint32_t>(words_used_);
    m.frames = static_cast<std::uint32_t>(caller_frame_count_);
    std::copy_n(caller_frames_, caller_frame_count_, words_ + words_used_);
    words_used_ += m.frames;
  } else if (g.context.pc != nullptr) {
    walk_from(state_of(g.context), g, m);
  }
}

void census::walk_from(const os::machine_state& from, const goroutine& g, member& m) noexcept {
  m.first_word = static_cast<std::uint32_t>(words_used_);
  m.frames = static_cast<std::uint32_t>(os::unwind(code_, from, bounds_of(g), words_ + words_used_, max_frames));
  words_used_ += m.frames;
}

// The last walk was for nothing.
void census::forget_walk(member& m) noexcept {
  words_used_ -= m.frames;
  m.frames = 0;
  m.name_size = 0;
}

void census::add_queued(const runnable& r) noexcept {
  if (r.ops != nullptr) {
    add_unborn(static_cast<const record&>(r));
  } else {
    walk_if_it_ran(static_cast<const goroutine&>(r));
  }
}

void census::add_unborn(const record& r) noexcept {
  const auto pc = reinterpret_cast<std::uintptr_t>(r.creator_pc);
  for (std::size_t i = 0; i < unborn_count_; ++i) {
    if (unborn_[i].creator_pc != pc || unborn_[i].creator != r.creator) continue;
    ++unborn_[i].count;
    return;
  }
  if (unborn_count_ == max_creators) {
    complete_ = false;
    return;
  }
  unborn_[unborn_count_++] = {pc, r.creator, 1};
}

}  // namespace weft::sched
