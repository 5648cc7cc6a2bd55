#include "base/futex.h"

#include <cerrno>
#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::base {
namespace {

// Returns 0 or the error number; the caller's errno stays as it was.
int raw_futex(futex_word& word, int op, std::uint32_t value, const timespec* timeout, std::uint32_t mask) noexcept {
  const int saved = errno;
  const long rc = ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), op | FUTEX_PRIVATE_FLAG, value, timeout,
                            nullptr, mask);
  const int error = rc < 0 ? errno : 0;
  errno = saved;
  return error;
}

}  // namespace

void futex_wait(futex_word& word, std::uint32_t expected) noexcept {
  raw_futex(word, FUTEX_WAIT, expected, nullptr, 0);
}

bool futex_wait_until(futex_word& word, std::uint32_t expected, std::int64_t deadline_ns) noexcept {
  const timespec ts{.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000),
                    .tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000)};
  // The bitset form takes an absolute time, so a restart after a signal does not stretch it.
  return raw_futex(word, FUTEX_WAIT_BITSET, expected, &ts, FUTEX_BITSET_MATCH_ANY) != ETIMEDOUT;
}

void futex_wake(futex_word& word, int count) noexcept { raw_futex(word, FUTEX_WAKE, static_cast<std::uint32_t>(count), nullptr, 0); }

}  // namespace weft::base
