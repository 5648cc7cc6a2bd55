// G: a goroutine that has been given a stack (one that has not is a detail::record). It lives at the top of that stack,
// so the page that holds it also holds its first frames.
//
// States, who makes each transition, and what holds in each:
//
//   dead      on a stack in a cache                       -> runnable   the M that binds a record to the stack
//   runnable  in exactly one queue, or in an M's hands    -> running    the M that executes it
//   running   curg of one M                               -> runnable   itself: yields, is preempted
//                                                         -> waiting    itself: parks
//                                                         -> syscall    itself: enters a blocking call
//                                                         -> detached   who revokes its P while it is in user code
//                                                         -> dead       itself: has ended
//   waiting   known to whatever will wake it              -> runnable   the one waker
//   syscall   in a blocking call, its M has the P still   -> running    itself: the call was short
//                                                         -> detached   who takes the P (sysmon, a stop of the world)
//   detached  runs on its M without a P                   -> running    itself, having regained one; or who gives it back
//                                                         -> runnable   itself: no P was free
//                                                         -> preempted  itself, in the signal handler: stopped in place
//   preempted asleep in the handler, on the list of those  -> running    itself: its M was given a P
//             stopped                                     -> detached   itself: it was let go without one
//   timed     runnable, and one of those for which it is  -> running    as runnable, which is what it counts as in
//             measured how long it takes until they run                 every other respect
//
// A thread's stand-in uses running, waiting and runnable only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <weft/detail/record.h>
#include <weft/detail/wait_reason.h>

#include "arch/context.h"
#include "arch/sanitizer.h"
#include "base/fatal.h"
#include "base/note.h"
#include "base/peekable.h"
#include "base/prefetch.h"
#include "base/time_histogram.h"

namespace weft::gmp {

struct machine;

enum class status : std::uint32_t { dead, runnable, running, waiting, syscall, detached, preempted, timed, count_ };

std::string_view to_string(status s) noexcept;

// The table of the comment above.
constexpr bool is_legal(status from, status to) noexcept {
  constexpr auto bit = [](status s) { return 1u << static_cast<unsigned>(s); };
  constexpr std::uint32_t legal[] = {
      /* dead      */ bit(status::runnable),
      /* runnable  */ bit(status::running),
      /* running   */ bit(status::runnable) | bit(status::waiting) | bit(status::syscall) | bit(status::detached) |
          bit(status::dead),
      /* waiting   */ bit(status::runnable),
      /* syscall   */ bit(status::running) | bit(status::detached),
      /* detached  */ bit(status::running) | bit(status::runnable) | bit(status::preempted),
      /* preempted */ bit(status::running) | bit(status::detached),
      /* timed     */ bit(status::running),
  };
  return (legal[static_cast<unsigned>(from)] & bit(to)) != 0;
}

// The C++ runtime's per-thread exception state (`__cxa_eh_globals`): what is caught, and how many are in flight.
// Sixteen bytes with the padding, and copied as such, in one piece.
struct exception_state {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

// 0 if it is clear. Padding that is not would only cost time.
inline std::uint64_t any_bits(const void* state) noexcept {
  std::uint64_t half[2];
  static_assert(sizeof half == sizeof(exception_state));
  __builtin_memcpy(half, state, sizeof half);
  return half[0] | half[1];
}

// What a thread keeps for its goroutine, in a word: errno in the lower half, and in the upper one whether there is an
// exception_state besides. Nearly always it is the same for who goes and who comes, and that is seen at a glance.
using thread_word = std::uint64_t;
inline constexpr thread_word with_exceptions = thread_word{1} << 32;
inline thread_word word_of(int error) noexcept { return static_cast<std::uint32_t>(error); }
inline int errno_of(thread_word w) noexcept { return static_cast<int>(static_cast<std::uint32_t>(w)); }

inline std::string_view name_of(const detail::record* body) noexcept {
  if (body == nullptr || body->ops == nullptr || body->ops->extras == nullptr) return {};
  return body->ops->extras(body)->name;
}

// Not more than so many bytes of a text, and not ending inside of a letter (UTF-8).
inline std::string_view beginning_of(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

// A goroutine that waits for the end of another, which runs on its stack meanwhile: what makes it the one that it is. On
// that stack. (sched/join.h)
struct lender {
  lender* outer;          // who lent the stack to this one
  arch::context context;  // where it stands, for dumps
  std::uint64_t id;
  detail::record* body;
  void* locals;
  void (*destroy_locals)(void*);
  std::byte exceptions[sizeof(exception_state)];
  std::int64_t waiting_since;
  int saved_errno;
  detail::wait_reason reason;
  bool is_main;
};

struct goroutine : detail::runnable {
  // -- one cache line: all that a switch needs --
  arch::context context{};
  thread_word saved = 0;           // while it does not run
  machine* own_machine = nullptr;  // only this M may run it: it is locked to it, or stopped in place on it
  std::atomic<status> state{status::dead};

  std::uint32_t lock_depth = 0;    // lock_os_thread() calls that are not undone
  machine* on_machine = nullptr;   // the M it is in a blocking call on
  exception_state exceptions;      // while it does not run, if `saved` says so

  base::peekable_value<std::uint64_t> id;
  detail::record* body = nullptr;  // what it runs; null for main's and threads' stand-ins
  std::byte* stack_low = nullptr;  // usable from here up to this object
  std::size_t stack_size = 0;      // as asked for
  void* locals = nullptr;          // goroutine_local values, destroyed at its end
  void (*destroy_locals)(void*) = nullptr;
  gmp::lender* lender = nullptr;   // whose stack this one runs on, if it is not its own
  std::atomic<std::int64_t> waiting_since{0};  // coarse clock
  base::peekable_value<detail::wait_reason> reason{detail::wait_reason::none};
  bool may_have_children = false;  // it, or who had this stack before, has spawned others: see take_newest_child()
  std::uint64_t stop_ticket = 0;   // stopped in place: its turn comes when so many have left the global queue
  bool is_main = false;    // run()'s
  bool is_thread = false;  // a plain thread's stand-in
  base::note thread_note;  // what the stand-in sleeps on
  [[no_unique_address]] arch::fiber fiber;

  std::string_view name() const noexcept { return name_of(body); }
};

[[noreturn, gnu::cold]] void bad_transition(const goroutine& g, status expected, status to) noexcept;

// What a transition from a state other than the expected one is: the end of a measurement, or a bug.
[[gnu::cold, gnu::noinline]] void unexpected_transition(goroutine& g, status expected, status to) noexcept;

// The one door for state changes that only one party can make at that moment.
// [g.state] release: what led to the state is visible to who reads it with acquire.
inline void transition(goroutine& g, status from, status to) noexcept {
  if (g.state.load(std::memory_order_relaxed) != from || !is_legal(from, to)) [[unlikely]] {
    unexpected_transition(g, from, to);
  }
  g.state.store(to, std::memory_order_release);
}

// The same for the goroutine that runs this code, on its way out of `running`: that it runs needs no proof outside of debug builds.
inline void leave_running(goroutine& g, status to) noexcept {
#ifdef WEFT_DEBUG_CHECKS
  transition(g, status::running, to);
#else
  g.state.store(to, std::memory_order_release);  // [g.state]
#endif
}

// The same where two parties compete (a thread returning from a blocking call, sysmon taking its P).
inline bool try_transition(goroutine& g, status from, status to) noexcept {
  if (!is_legal(from, to)) [[unlikely]] bad_transition(g, from, to);
  return g.state.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_acquire);
}

// It is off its stack and will run soon, for the first time in a while maybe: the frames in which it goes on are fetched, all at
// once; one return after the other it would have to wait for each.
inline void fetch_frames(const goroutine& g) noexcept {
  const auto* at = static_cast<const std::byte*>(g.context.sp);
  for (int line = 0; line < 4; ++line) base::prefetch(at + line * 64);
}

// One in so many goroutines that become runnable after a wait is timed: the clock costs as much as a switch.
inline constexpr std::uint64_t timed_every = 256;

// From runnable to timed, by the waker, before the goroutine is in a queue.
[[gnu::cold, gnu::noinline]] void begin_timing(goroutine& g) noexcept;

// How long those that were timed were runnable before they ran.
extern base::time_histogram latencies;

}  // namespace weft::gmp
