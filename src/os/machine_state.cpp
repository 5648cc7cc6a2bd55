#include "os/machine_state.h"

#include <sys/ucontext.h>

namespace weft::os {

machine_state interrupted_at(const void* signal_context) noexcept {
  const mcontext_t& at = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
#if defined(__x86_64__)
  const auto word = [&](int n) { return static_cast<std::uintptr_t>(at.gregs[n]); };
  return {word(REG_RIP), word(REG_RSP), word(REG_RBP)};
#elif defined(__aarch64__)
  return {at.pc, at.sp, at.regs[29], at.regs[30]};
#endif
}

}  // namespace weft::os
