// One wait of one goroutine (or plain thread) that may be ended by a waker, or by a deadline, whichever is first. The
// waiter makes the parker findable before it parks, so nothing is locked across the switch.
//
//   announced --park's hook--> parked --wake()-----> woken      wake() readies the goroutine
//       |                        +-----deadline----> expired    the timer readies it
//       +------wake()----------> woken                          the goroutine notices before it sleeps
//       +------deadline--------> expired --wake()--> released   the waker came too late, and is done with the parker
//
// Each arrow is one compare-and-swap; the hook's is the last thing that it does to the parker, since the waiter may be
// running and the parker gone right after it.
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/detail/park.h>

#include "base/prefetch.h"
#include "timer/node.h"

namespace weft::sched {

class parker {
 public:
  parker() noexcept : g_(detail::self()) {}
  parker(const parker&) = delete;
  parker& operator=(const parker&) = delete;

  // The waiter. Returns when woken.
  void park(detail::wait_reason why) noexcept;
  // True: woken. False: the deadline came first; a waker may still be about to call wake(): unlink the parker from
  // wherever wakers find it, or, if one has already taken it from there, call await_waker().
  bool park_until(detail::wait_reason why, std::int64_t deadline_ns) noexcept;
  // Expired, and a waker has taken hold of the parker: waits until it has let go.
  void await_waker() noexcept;

  // The one waker. Does not touch the parker after the waiter could have gone on.
  void wake() noexcept;
  // The same, but leaves it to the caller to ready the goroutine that is returned, if one is. In a section, on g0 or on a
  // thread that nobody stops.
  gmp::goroutine* take() noexcept;
  // For who takes several: has the goroutine's cache line fetched.
  void expect_take() const noexcept { base::prefetch_to_write(g_); }
  // Its goroutine is frozen: to wake it has no effect until the world goes on.
  bool is_frozen() const noexcept;

 private:
  enum : std::uint32_t { announced, parked, woken, expired, released };

  static bool commit(gmp::goroutine*, void* self) noexcept;
  static void on_timer(void* self, std::uint64_t, std::int64_t) noexcept;
  bool finish(std::uint32_t outcome, gmp::goroutine*& to_ready) noexcept;
  bool park_thread_until(detail::wait_reason why, std::int64_t deadline_ns) noexcept;

  gmp::goroutine* const g_;
  std::atomic<std::uint32_t> state_{announced};
};

}  // namespace weft::sched
