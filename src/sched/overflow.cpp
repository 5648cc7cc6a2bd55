#include "sched/overflow.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/fatal.h"
#include "gmp/current.h"
#include "os/backtrace.h"
#include "os/memory.h"
#include "sched/last_words.h"
#include "sched/stack.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

namespace weft::sched {
namespace {

struct sigaction previous_segv;
struct sigaction previous_bus;

// The kernel's frame alone can be larger than SIGSTKSZ with wide vector registers; the unwinder needs room too.
std::size_t signal_stack_bytes() noexcept {
  const std::size_t kernel = ::getauxval(AT_MINSIGSTKSZ);
  const std::size_t bytes = std::max<std::size_t>(kernel, 2048) + 64 * 1024;
  return (bytes + os::page_size - 1) & ~(os::page_size - 1);
}

[[noreturn]] void report(const goroutine* g, const void* context) noexcept {
  base::announce_end();
  base::text t;
  name_dying(t << "\n", *g);
  t << ": stack overflow\n"
    << "its stack has " << std::uint64_t{g->stack_size} << " bytes (options::stack_size, go_options::stack_size)\n";
  t.print();
  os::print_backtrace(64);
  list_goroutines_before_the_end(context);
  std::abort();
}

void forward(int signal, siginfo_t* info, void* context, const struct sigaction& previous) noexcept {
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler == SIG_IGN) return;
  if (previous.sa_handler != SIG_DFL) return previous.sa_handler(signal);
  // The default: put it back and let the faulting instruction fault again.
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) ::raise(signal);  // somebody sent it: it would not come again by itself
}

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  const gmp::machine* m = gmp::machine_of_thread();
  if (m != nullptr && m->curg != nullptr && info->si_code > 0) {
    const goroutine* hit = guard_hit(info->si_addr);
    if (hit == m->curg) report(hit, context);
  }
  forward(signal, info, context, signal == SIGSEGV ? previous_segv : previous_bus);
}

}  // namespace

void install_overflow_handler() noexcept {
  struct sigaction action = {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, &previous_segv);
  ::sigaction(SIGBUS, &action, &previous_bus);
}

void* use_signal_stack() noexcept {
  const std::size_t bytes = signal_stack_bytes();
  stack_t present = {};
  if (::sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0 && present.ss_size >= bytes) return nullptr;
  stack_t stack = {};
  stack.ss_sp = os::map_memory(bytes);
  stack.ss_size = bytes;
  ::sigaltstack(&stack, nullptr);
  return stack.ss_sp;
}

void drop_signal_stack(void* own) noexcept {
  if (own == nullptr) return;
  stack_t present = {};
  if (::sigaltstack(nullptr, &present) == 0 && present.ss_sp == own) {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  ::munmap(own, signal_stack_bytes());
}

}  // namespace weft::sched
