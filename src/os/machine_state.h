// The registers from which a walk over a stack begins.
#pragma once

#include <cstdint>

namespace weft::os {

struct machine_state {
  std::uintptr_t pc, sp;
  std::uintptr_t fp;        // 0: not known
  std::uintptr_t link = 0;  // where the return address is in a register until the function has saved it. 0: not known
};

// Where the caller is. To be used by the caller's own frame, or one that outlives the walk.
[[gnu::always_inline]] inline machine_state here() noexcept {
  machine_state s{};
#if defined(__x86_64__)
  asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2" : "=r"(s.pc), "=r"(s.sp), "=r"(s.fp));
#else
  asm volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=r"(s.pc), "=r"(s.sp), "=r"(s.fp));
#endif
  return s;
}

// Where a thread was when a signal interrupted it: from the handler's third argument.
machine_state interrupted_at(const void* signal_context) noexcept;

}  // namespace weft::os
