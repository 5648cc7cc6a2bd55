#include "gmp/current.h"

namespace weft::gmp {

// Constant-initialized and trivial, so no wrapper function stands between the asm above and the variable.
extern "C" {
__attribute__((visibility("hidden"), tls_model("initial-exec"), used)) constinit thread_local machine* weft_this_machine = nullptr;
__attribute__((visibility("hidden"), tls_model("initial-exec"))) constinit thread_local machine* weft_machine_of_thread = nullptr;
}

#if !defined(__x86_64__)
__attribute__((noinline)) machine* current_machine() noexcept {
  asm volatile("" ::: "memory");
  return weft_this_machine;
}
#endif

__attribute__((noinline)) void set_current_machine(machine* m) noexcept { weft_this_machine = weft_machine_of_thread = m; }

__attribute__((noinline)) void hide_current_machine() noexcept { weft_this_machine = nullptr; }

__attribute__((noinline)) machine* machine_of_thread() noexcept { return weft_machine_of_thread; }

}  // namespace weft::gmp
