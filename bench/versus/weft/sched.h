// What several weft workloads use: waiting for many goroutines, and many goroutines waiting. Where the library does not
// have the public primitive yet, a minimal one stands in, made of the park and ready that every primitive is made of.
#pragma once

#include <weft/weft.h>

#include <atomic>
#include <cstdint>

#include "../common/harness.h"

#if !__has_include(<weft/wait_group.h>) || !__has_include(<weft/chan.h>)
#include <weft/detail/park.h>
#endif

namespace bench {

#if __has_include(<weft/wait_group.h>)
using weft::wait_group;
#else
// For one waiter, and add() before the first done().
class wait_group {
 public:
  void add(int delta) { count_.fetch_add(delta, std::memory_order_relaxed); }

  // The exchange is the last touch of *this by a done(): the waiter may destroy it from then on.
  void done() {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (auto* waiter = waiter_.exchange(finished(), std::memory_order_acq_rel)) weft::detail::ready(waiter);
  }

  void wait() {
    if (waiter_.load(std::memory_order_acquire) == finished()) return;
    weft::detail::park(
        [](weft::detail::goroutine* self, void* wg) {
          weft::detail::goroutine* nobody = nullptr;
          return static_cast<wait_group*>(wg)->waiter_.compare_exchange_strong(nobody, self, std::memory_order_acq_rel);
        },
        this, weft::detail::wait_reason::wait_group);
  }

 private:
  weft::detail::goroutine* finished() { return reinterpret_cast<weft::detail::goroutine*>(this); }

  std::atomic<std::int64_t> count_{0};
  std::atomic<weft::detail::goroutine*> waiter_{nullptr};
};
#endif

// Many wait, one opens.
#if __has_include(<weft/chan.h>)
class gate {
 public:
  void wait() { closed_.recv(); }
  void open() { closed_.close(); }

 private:
  weft::chan<char> closed_;
};
#else
class gate {
 public:
  void wait() {
    waiter me{.on = this, .goroutine = nullptr, .next = nullptr};
    weft::detail::park(
        [](weft::detail::goroutine* self, void* arg) {
          auto* w = static_cast<waiter*>(arg);
          w->goroutine = self;
          w->next = w->on->first_.load(std::memory_order_relaxed);
          do {
            if (w->next == w->on->opened()) return false;
          } while (!w->on->first_.compare_exchange_weak(w->next, w, std::memory_order_acq_rel));
          return true;
        },
        &me, weft::detail::wait_reason::chan_receive);
  }

  void open() {
    for (waiter* w = first_.exchange(opened(), std::memory_order_acq_rel); w != nullptr;) {
      waiter* const next = w->next;  // *w is on the stack of the one that is woken
      weft::detail::ready(w->goroutine);
      w = next;
    }
  }

 private:
  struct waiter {
    gate* on;
    weft::detail::goroutine* goroutine;
    waiter* next;
  };
  waiter* opened() { return reinterpret_cast<waiter*>(this); }

  std::atomic<waiter*> first_{nullptr};
};
#endif

// Workloads that others measure under circumstances.
outcome yield(const arguments&);
outcome spawn(const arguments&);

}  // namespace bench
