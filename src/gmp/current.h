// The M that this code runs on, or null on a thread that is not an M.
//
// A goroutine can resume on another thread, so the answer changes across every park; and compilers keep the address of a
// thread-local variable in a register across calls, because in their world a function stays on its thread. Hence an
// accessor the compiler can neither cache nor look into: on x86-64 a volatile asm (two loads, inlined), elsewhere a call.
#pragma once

namespace weft::gmp {

struct machine;

extern "C" {
extern __attribute__((visibility("hidden"), tls_model("initial-exec"))) thread_local machine* weft_this_machine;
}

#if defined(__x86_64__)
[[gnu::always_inline]] inline machine* current_machine() noexcept {
  machine* m;
  asm volatile(
      "movq weft_this_machine@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(m));
  return m;
}
#else
machine* current_machine() noexcept;
#endif

void set_current_machine(machine* m) noexcept;

// The thread goes on as one that is not an M (sched/finishing.h), until set_current_machine(). A signal handler asks for
// machine_of_thread(): that one does not notice.
void hide_current_machine() noexcept;
machine* machine_of_thread() noexcept;

}  // namespace weft::gmp
