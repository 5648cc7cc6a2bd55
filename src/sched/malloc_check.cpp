#include "sched/malloc_check.h"

#include "arch/sanitized.h"

#if defined(WEFT_DEBUG_CHECKS) && (defined(WEFT_ASAN) || defined(WEFT_TSAN))

#include <atomic>
#include <cstddef>

#include "base/fatal.h"
#include "gmp/current.h"
#include "gmp/machine.h"

// The sanitizers' own; gcc ships no header that declares it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                                         void (*free_hook)(const volatile void*));

namespace weft::sched {
namespace {

thread_local bool forbidden = false;

void check() noexcept {
  static std::atomic<bool> reported{false};  // the end of the program may allocate
  const gmp::machine* const m = gmp::current_machine();
  const bool unstoppable = m != nullptr ? m->locks.load(std::memory_order_relaxed) != 0 : forbidden;
  if (!unstoppable || reported.exchange(true, std::memory_order_relaxed)) return;
  base::fatal("malloc or free in the runtime, where it cannot be stopped: a goroutine stopped in place may hold its lock");
}

}  // namespace

void watch_malloc() noexcept {
  __sanitizer_install_malloc_and_free_hooks([](const volatile void*, std::size_t) { check(); },
                                            [](const volatile void*) { check(); });
}

void forbid_malloc_on_this_thread() noexcept { forbidden = true; }

}  // namespace weft::sched

#else

namespace weft::sched {

void watch_malloc() noexcept {}
void forbid_malloc_on_this_thread() noexcept {}

}  // namespace weft::sched

#endif
