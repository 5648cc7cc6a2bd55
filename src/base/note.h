// A one-shot sleep: one thread sleeps, one thread wakes it, in either order.
//
//   clear --wake()--> set --sleep() returns--> clear
//
// [note.set] what the waker did before wake() is visible to the sleeper after sleep().
#pragma once

#include <cstdint>

#include "base/fatal.h"
#include "base/futex.h"

namespace weft::base {

class note {
 public:
  // Blocks the thread until wake(), and makes the note ready for its next use.
  void sleep() noexcept {
    while (word_.load(std::memory_order_acquire) == 0) futex_wait(word_, 0);  // [note.set]
    word_.store(0, std::memory_order_relaxed);
  }

  // As sleep(); false if the time came first (and the note is still clear).
  bool sleep_until(std::int64_t deadline_ns) noexcept {
    while (word_.load(std::memory_order_acquire) == 0) {  // [note.set]
      if (!futex_wait_until(word_, 0, deadline_ns) && word_.load(std::memory_order_acquire) == 0) return false;
    }
    word_.store(0, std::memory_order_relaxed);
    return true;
  }

  // The sleeper may be gone, and the note with it, before the futex call: that is harmless (see futex_wake).
  void wake() noexcept {
    if (word_.exchange(1, std::memory_order_release) != 0) fatal("a note was woken twice");  // [note.set]
    futex_wake(word_, 1);
  }

  // As wake(), where several may try and one is enough.
  void wake_if_clear() noexcept {
    if (word_.exchange(1, std::memory_order_release) == 0) futex_wake(word_, 1);  // [note.set]
  }

 private:
  futex_word word_{0};
};

}  // namespace weft::base
