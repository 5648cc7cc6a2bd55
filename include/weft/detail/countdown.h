// A counter, and those who wait until it is zero: the heart of wait_group and latch. Counting is one atomic
// instruction, and so is finding out that somebody waits; nothing is locked.
//
//   word_   counter (upper half, signed), waiters (lower half)
//           A waiter counts itself in while the counter is above zero (one compare-and-swap), and then pushes its
//           record on head_. Whoever brings the counter to zero and finds waiters counted takes the list once all of
//           them are on it, counts them out, and wakes them.
//   head_   the waiters' records, newest first. The first waiter of a round simply stores it; the others wait for that
//           and push. Nobody else touches it before all are there, so no more is needed
//
// While a waiter is counted in, its wait() has not returned, so the object exists; the one who counted to zero does not
// touch it after the records are taken and counted out.
//   [countdown.zero] release: what came before each count is visible to who sees zero with acquire
//   [countdown.wait] release: the record is visible to who takes it
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include <weft/detail/errno.h>
#include <weft/detail/park.h>

namespace weft::detail {

class countdown {
 public:
  static constexpr std::int64_t max = std::numeric_limits<std::int32_t>::max();

  constexpr explicit countdown(std::int64_t n) noexcept : word_(n * one) {}
  countdown(const countdown&) = delete;
  countdown& operator=(const countdown&) = delete;

  bool is_zero() const noexcept { return word_.load(std::memory_order_acquire) < one; }  // [countdown.zero]

  // n is from 0 to max, here and below.

  // Adds to the counter; false if that is a misuse, and then nothing has changed: too much, or from zero while somebody
  // waits (for an earlier zero).
  bool up(std::int64_t n) noexcept {
    if (n == 0) return true;
    const std::int64_t before = word_.fetch_add(n * one, std::memory_order_relaxed);
    if ((before & waiters) != 0 || before >= (max - n + 1) * one) [[unlikely]]
      return check_up(before, n);
    return true;
  }

  // Subtracts from the counter, and wakes if it is zero then; false if it would be negative, and then nothing has
  // changed.
  bool down(std::int64_t n) noexcept {
    if (n == 0) return true;
    // [countdown.zero]; acquire: who brings it to zero has seen all that the others did
    const std::int64_t before = word_.fetch_sub(n * one, std::memory_order_acq_rel);
    if ((before >> 32) > n || before == n * one) return true;
    return reached(before, n);
  }

  void wait(wait_reason why) noexcept {
    if (!is_zero()) wait_slow(why);
  }

 private:
  struct record;
  struct commit_argument;

  static constexpr std::int64_t one = std::int64_t{1} << 32;
  static constexpr std::int64_t waiters = one - 1;

  static bool commit(goroutine*, void*) noexcept;
  void wait_slow(wait_reason why) noexcept;
  bool check_up(std::int64_t before, std::int64_t n) noexcept;
  bool reached(std::int64_t before, std::int64_t n) noexcept;
  record* take(std::int64_t& n) noexcept;
  void wake(std::int64_t n) noexcept;

  std::atomic<std::int64_t> word_;
  std::atomic<record*> head_{nullptr};
};

}  // namespace weft::detail
