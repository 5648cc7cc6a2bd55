// Being inside the runtime. Between enter() and leave() the thread keeps its P and cannot be stopped in place.
//
// Rule: locks first, then everything else. enter() raises `locks` and only then looks whether the P was revoked while
// the goroutine ran user code; the other half of the handshake is revoke() in world.cpp.
#pragma once

#include <atomic>

#include "gmp/current.h"
#include "sched/scheduler.h"

namespace weft::sched {

using gmp::current_machine;

// The P was taken while this goroutine ran user code: get one, or wait in the global queue for one. Returns the M
// that the goroutine is on afterwards, in a section.
[[gnu::cold, gnu::noinline]] machine* regain_processor(machine* m) noexcept;

// The slice is over or the world stops: go to the back of the global queue. Returns as regain_processor does.
[[gnu::cold, gnu::noinline]] machine* attend(machine* m) noexcept;

// Begins a section; null on a thread that is not an M.
[[gnu::always_inline]] inline machine* enter() noexcept {
  machine* m = current_machine();
  if (m == nullptr) return nullptr;
  const std::int32_t depth = m->locks.load(std::memory_order_relaxed);
  m->locks.store(depth + 1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // [section.enter] the store above before the load below
  // acquire: [world.give_back]
  if (depth == 0 && m->revoked.load(std::memory_order_acquire) != gmp::p_attached) [[unlikely]] return regain_processor(m);
  return m;
}

// The slice is over: as attend(), and then leaves the section, which is the outermost.
[[gnu::cold, gnu::noinline]] void attend_and_leave(machine* m) noexcept;

// As enter() for who cannot be in a section already, if nothing stands in the way. Null, and nothing has happened: on a plain
// thread, or if the P was revoked; enter() knows what to do. For short ways that then need no registers saved.
[[gnu::always_inline]] inline machine* enter_simply() noexcept {
  machine* m = current_machine();
  if (m == nullptr) [[unlikely]] return nullptr;
  m->locks.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // [section.enter]
  if (m->revoked.load(std::memory_order_acquire) == gmp::p_attached) [[likely]] return m;  // [world.give_back]
  m->locks.store(0, std::memory_order_release);  // [section.leave]
  return nullptr;
}

// The same for who cannot be in one already: a goroutine that is about to let others run.
[[gnu::always_inline]] inline machine* enter_outermost() noexcept {
  machine* m = current_machine();
  if (m == nullptr) return nullptr;
  m->locks.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // [section.enter]
  if (m->revoked.load(std::memory_order_acquire) != gmp::p_attached) [[unlikely]] return regain_processor(m);  // [world.give_back]
  return m;
}

// Ends a section begun on the M that this code runs on now. A cooperative preemption point.
[[gnu::always_inline]] inline void leave(machine* m) noexcept {
  const std::int32_t depth = m->locks.load(std::memory_order_relaxed);
  if (depth == 1 && m->p->attention.load(std::memory_order_relaxed)) [[unlikely]] m = attend(m);
  // [section.leave] release: who revokes the P after this store sees all that the section did to it
  m->locks.store(depth - 1, std::memory_order_release);
}

// The same for a section that is known to be the outermost.
[[gnu::always_inline]] inline void leave_outermost(machine* m) noexcept {
  if (m->p->attention.load(std::memory_order_relaxed)) [[unlikely]] return attend_and_leave(m);
  m->locks.store(0, std::memory_order_release);  // [section.leave]
}

// The same, and returns `result`. As the last thing that a short way does it needs no registers saved.
template <class T>
[[gnu::cold, gnu::noinline]] T attend_and_leave_with(machine* m, T result) noexcept {
  attend_and_leave(m);
  return result;
}
template <class T>
[[gnu::always_inline]] inline T leave_outermost_with(machine* m, T result) noexcept {
  if (m->p->attention.load(std::memory_order_relaxed)) [[unlikely]] return attend_and_leave_with(m, result);
  m->locks.store(0, std::memory_order_release);  // [section.leave]
  return result;
}

// The same as a scope, for code that may also run on a plain thread and does not park inside.
class section {
 public:
  section() noexcept : m_(enter()) {}
  ~section() {
    if (m_ != nullptr) leave(m_);
  }
  section(const section&) = delete;
  section& operator=(const section&) = delete;

 private:
  machine* const m_;
};

}  // namespace weft::sched
