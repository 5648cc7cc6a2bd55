// The lock of a channel: a spin lock that costs no locked instruction where the channel is at home.
//
// Most channels are used by goroutines of one P for long stretches, and the code under the lock runs in a section, in
// which that P belongs to one M only. So a channel that one P has used many times in a row gets that P as its home.
// Whoever owns the home P takes the lock with plain stores; all others must first send the channel away from its home,
// which takes a barrier through every running thread (membarrier), some microseconds. After that it takes more uses to
// get a home again, and for a while no channel gets one.
//
//   home_    0, or the number of the P at which the channel is at home
//   bound_   the P that is, or was last, its home
//   inside_  entered: the owner of bound_ is about to find out whether the channel is still at home
//            held: that one has the lock
//   word_    1: somebody has the lock in the common way, or is sending the channel away in order to have it
//
//   The owner of home_    stores inside_ = entered [home.enter] and looks at home_ again. Still the same: it has the lock,
//                         inside_ = held, until inside_ = outside. Else it retreats: inside_ = outside, and it takes the common way.
//   Anybody else          changes word_ from 0 to 1 and looks at home_ [home.give]. It is 0: has the lock, until it
//                         stores word_ = 0. It is not: stores home_ = 0 [home.leave], passes the barrier, waits for
//                         inside_ == outside [home.exit], and has the lock likewise.
//   Who has word_         may make its own P the home [home.give], which is seen by who has word_ after it.
//
// Exclusion: home_ is changed only by who has word_. Who comes in by inside_ saw home_ after its store to inside_; who
// sends the channel away changes home_ before the barrier and looks at inside_ after it. The owner's store lies before
// the barrier, and is seen; or its look at home_ lies after it, and sees the change. Who comes in by word_ found home_
// to be 0, or made it so, and it stays 0 until this one gives the channel a home and then leaves.
//
// All that needs inside_ to have one writer. Its writers are the owners of bound_, one after the other: an M has retreated
// before it leaves the section, and so before its P can go to another. An M may be taken off its core between its look at home_
// and its store, though, and stay away for long: before bound_ becomes another P, whoever changes it makes sure that no M
// is still about to retreat (may_bind).
//
// What was done under the lock is visible to the next one: at home it is the same P, which brings along what its owners
// before did; from home to word_ through inside_ [home.exit]; from word_ to home, since who gave the home had word_ and was
// that P's owner.
//
// Not recursive; at home, who tries that is let in.
//
// Where the thread sanitizer looks on, which sees no barrier of the kernel's, no channel has a home; nor where the
// kernel has none.
//
// Rejected: a home from the beginning. Channels that live for a few uses, and are used by two Ps, would pay the
// barrier.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/delay.h"
#include "base/fatal.h"
#include "base/lock.h"
#include "base/spin_lock.h"
#include "gmp/machine.h"
#include "gmp/processor.h"

namespace weft::sched {

class WEFT_CAPABILITY("mutex") home_lock {
 public:
  using machine = gmp::machine;

  // How many uses in a row it takes. A home saves some nanoseconds a use, and to be sent away costs as many
  // microseconds; but from a P that is alone only a plain thread sends a channel away. Where tests look for races, homes come and
  // go more often.
#ifdef WEFT_DEBUG_DELAYS
  static constexpr std::uint16_t needed_alone = 4, needed_among_others = 16, most_needed = 64;
#else
  static constexpr std::uint16_t needed_alone = 64, needed_among_others = 1024, most_needed = 32768;
#endif

  // All that take the lock: in a section of `m`, which has a P, or m is null: a plain thread. A goroutine may keep the lock
  // across its switch, if what runs next releases it.

  void lock(machine* m) noexcept WEFT_ACQUIRE() {
    base::rank_acquired(rank, false);
    lock_another(m);
  }

  // One attempt; if it fails, lock_late() is to follow, or nothing. It also fails where something unusual is to be
  // done, so that short ways call nothing.
  [[gnu::always_inline]] bool try_lock(machine* m) noexcept WEFT_TRY_ACQUIRE(true) {
    if (!try_another(m)) [[unlikely]] return false;
    base::rank_acquired(rank, true);
    return true;
  }
  // `pauses`: how long until the first look.
  void lock_late(machine* m, int pauses = base::usual_pauses) noexcept WEFT_ACQUIRE() {
    base::rank_acquired(rank, false);
    lock_slow(m, pauses);
  }

  [[gnu::always_inline]] void unlock() noexcept WEFT_RELEASE() {
    base::rank_released(rank);
    unlock_another();
  }

  // Of several that one thread holds at once, in the order of their addresses, the check of ranks counts only the first
  // to be taken and the last to be released.
  void lock_another(machine* m) noexcept WEFT_NO_LOCK_ANALYSIS {
    if (m == nullptr || !try_another(m)) [[unlikely]] lock_slow(m, base::usual_pauses);
  }

  [[gnu::always_inline]] void unlock_another() noexcept WEFT_NO_LOCK_ANALYSIS {
    base::delay();
    if (inside_.load(std::memory_order_relaxed) == held) {
      inside_.store(outside, std::memory_order_release);  // [home.exit]
    } else {
      release_word();
    }
  }

  // For tests.
  bool has_home() const noexcept { return home_.load(std::memory_order_relaxed) != 0; }

 private:
  enum : std::uint8_t { outside, entered, held };  // inside_

  static constexpr base::lock_rank rank = base::lock_rank::wait_queue;

  static std::uint16_t number_of(const machine* m) noexcept { return static_cast<std::uint16_t>(m->p->id + 1); }

  [[gnu::always_inline]] bool enters_at_home(const machine* m) noexcept {
    const std::uint16_t here = number_of(m);
    if (home_.load(std::memory_order_relaxed) != here) return false;
    base::delay();
    check_that_nobody_is_inside();
    inside_.store(entered, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // [home.enter] the store above before the load below
    base::delay();
    if (home_.load(std::memory_order_relaxed) != here) [[unlikely]] {  // [home.leave]
      base::delay();
      inside_.store(outside, std::memory_order_release);
      return false;
    }
    inside_.store(held, std::memory_order_relaxed);
    return true;
  }

  [[gnu::always_inline]] bool try_word() noexcept {
    base::delay();
    std::uint8_t free = 0;
    // [home.word]
    return word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void release_word() noexcept { word_.store(0, std::memory_order_release); }  // [home.word]

  [[gnu::always_inline]] bool try_another(machine* m) noexcept {
    if (enters_at_home(m)) return true;
    if (!try_word()) [[unlikely]] return false;
    const std::uint16_t here = number_of(m);
    if (home_.load(std::memory_order_relaxed) != 0 || (last_ == here && left_ == 0)) [[unlikely]] {  // [home.give]
      release_word();
      return false;
    }
    if (last_ == here) {
      --left_;
    } else {
      last_ = here;
      left_ = needed_;
    }
    return true;
  }

  [[gnu::noinline, gnu::cold]] void lock_slow(machine* m, int pauses) noexcept;

  void check_that_nobody_is_inside() const noexcept {
#ifdef WEFT_DEBUG_CHECKS
    if (inside_.load(std::memory_order_relaxed) != outside) base::fatal("a channel's lock is taken at home by two");
#endif
  }

  void take_word(machine* m) noexcept;
  void consider_home(machine* m) noexcept;
  bool may_bind() const noexcept;
  void send_away(machine* m) noexcept;

  std::atomic<std::uint16_t> home_{0};   // changed by who has word_
  std::atomic<std::uint8_t> word_{0};
  std::atomic<std::uint8_t> inside_{outside};  // changed by the owner of bound_
  // Of who has the lock:
  std::uint16_t bound_ = 0;
  std::uint16_t last_ = 0;               // the P that used it last in the common way
  std::uint16_t left_ = 0;               // so many uses more by that one, and it may become the home
  std::uint16_t needed_ = needed_alone;  // how many it takes
};
static_assert(sizeof(home_lock) == 12);

}  // namespace weft::sched
