#include "base/delay.h"

#ifdef WEFT_DEBUG_DELAYS

#include <cerrno>
#include <cstdint>

#include <sched.h>
#include <unistd.h>

#include "base/pause.h"
#include "base/random.h"

namespace weft::base {
namespace {

[[gnu::noinline]] random& generator() noexcept {
  thread_local random r(static_cast<std::uint64_t>(::gettid()));
  asm volatile("" ::: "memory");
  return r;
}

}  // namespace

void delay() noexcept {
  const int saved = errno;
  const std::uint32_t dice = generator().below(1024);
  if (dice < 4) {
    ::sched_yield();
  } else if (dice < 5) {
    ::usleep(dice * 10);
  } else if (dice < 64) {
    for (std::uint32_t i = 0; i < dice; ++i) cpu_pause();
  }
  errno = saved;
}

}  // namespace weft::base

#endif
