// A section at whose end the goroutine is not asked to give way: for code that somebody else's code has called back,
// with locks of its own. The next ordinary section makes up for it.
#pragma once

#include "sched/park_in_section.h"

namespace weft::detail {

class section_without_preemption {
 public:
  section_without_preemption() noexcept : m_(sched::enter()) {}
  ~section_without_preemption() {
    if (m_ != nullptr) sched::leave_quietly(m_);
  }
  section_without_preemption(const section_without_preemption&) = delete;
  section_without_preemption& operator=(const section_without_preemption&) = delete;

 private:
  gmp::machine* const m_;
};

}  // namespace weft::detail
