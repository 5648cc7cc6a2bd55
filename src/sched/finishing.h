// A section of who finishes what others count on: it has taken a waiter that is to be woken, or a place that is to be filled. Unlike
// an ordinary section it does not begin by waiting for a P. Where the P was taken away the thread does what a plain thread would, which
// anybody may at any time. So what was begun before the end of run() comes to its end before the goroutine freezes; and nobody who is
// left waits for a frozen goroutine, but for one that holds a lock or is in somebody's code. Nothing in such a section may park.
#pragma once

#include "sched/section.h"

namespace weft::sched {

// In a section that was begun without a look at the P. True: that is gone; and this thread is no M, until step_inside().
[[gnu::cold, gnu::noinline]] bool step_outside(machine* m) noexcept;
// False: in a forked child, where there are no Ps.
[[gnu::cold, gnu::noinline]] bool step_inside(machine* m) noexcept;

template <bool GivesWay>
class finishing_section {
 public:
  finishing_section() noexcept : m_(current_machine()) {
    if (m_ == nullptr) return;
    const std::int32_t depth = m_->locks.load(std::memory_order_relaxed);
    m_->locks.store(depth + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // [section.enter]
    // acquire: [world.give_back]
    if (depth == 0 && m_->revoked.load(std::memory_order_acquire) != gmp::p_attached) [[unlikely]] outside_ = step_outside(m_);
  }
  ~finishing_section() {
    if (m_ == nullptr) return;
    const bool may_have_processor = !outside_ || step_inside(m_);
    if (GivesWay && may_have_processor) {
      leave(outside_ ? regain_processor(m_) : m_);
    } else {
      m_->locks.store(m_->locks.load(std::memory_order_relaxed) - 1, std::memory_order_release);  // [section.leave]
    }
  }
  finishing_section(const finishing_section&) = delete;
  finishing_section& operator=(const finishing_section&) = delete;

  // Null: a thread that is not an M, or has no P.
  machine* m() const noexcept { return outside_ ? nullptr : m_; }

 private:
  machine* const m_;
  bool outside_ = false;
};

// The last step: its end is a cooperative preemption point, and where a goroutine without a P waits for one.
using finishing = finishing_section<true>;
// More is to come. Who is without a P stays so.
using finishing_quietly = finishing_section<false>;

// What others count on may be handed on to a goroutine that has yet to run, but only as long as the world goes on: freeze() lets those
// goroutines come to the end of it first; unless it takes long, for then it is in somebody's code. False: too late, who has it does it.
bool begin_handing_on() noexcept;
void end_handing_on() noexcept;
void allow_handing_on() noexcept;
void let_handed_on_end() noexcept;

}  // namespace weft::sched
