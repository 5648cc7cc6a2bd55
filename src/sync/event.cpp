#include <weft/detail/event.h>

#include <weft/detail/park.h>

#include "base/delay.h"
#include "base/pause.h"
#include "sched/finishing.h"
#include "sched/parker.h"
#include "sched/section.h"

namespace weft::detail {

// On the waiter's stack. Belongs to the list until set() has taken the list or the waiter has unlinked itself.
struct event::waiter {
  waiter* next = nullptr;
  sched::parker parker;
};

std::uintptr_t event::lock_list() noexcept {
  for (;;) {
    std::uintptr_t w = word_.load(std::memory_order_acquire);
    if ((w & locked) != 0) {
      base::cpu_pause();  // the holder only walks the list, in a section
      continue;
    }
    if (w == done) return done;
    if (word_.compare_exchange_weak(w, w | locked, std::memory_order_acq_rel, std::memory_order_relaxed)) return w;
  }
}

bool event::add(waiter& w) noexcept {
  std::uintptr_t head = word_.load(std::memory_order_acquire);
  for (;;) {
    if (head == done) return false;
    if ((head & locked) != 0) {
      base::cpu_pause();
      head = word_.load(std::memory_order_acquire);
      continue;
    }
    w.next = reinterpret_cast<waiter*>(head);
    base::delay();
    // [event.wait] release: set() sees the waiter
    if (word_.compare_exchange_weak(head, reinterpret_cast<std::uintptr_t>(&w), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return true;
    }
  }
}

// The deadline came first. If set() has the list already, it is about to pass by.
void event::remove(waiter& w) noexcept {
  sched::section section;
  const std::uintptr_t head = lock_list();
  if (head == done) return w.parker.await_waker();
  auto* first = reinterpret_cast<waiter*>(head);
  for (waiter** at = &first; *at != nullptr; at = &(*at)->next) {
    if (*at != &w) continue;
    *at = w.next;
    break;
  }
  word_.store(reinterpret_cast<std::uintptr_t>(first), std::memory_order_release);
}

bool event::set_for_others() noexcept {
  const sched::finishing section;  // a waiter whose deadline came may be spinning until the walk below has passed it
  std::uintptr_t head = word_.load(std::memory_order_acquire);
  for (;;) {
    if ((head & locked) != 0) {
      base::cpu_pause();
      head = word_.load(std::memory_order_acquire);
      continue;
    }
    if (head == abandoned) return true;
    base::delay();
    // [event.done] what led to the event is visible to who sees it done; [event.wait]
    if (word_.compare_exchange_weak(head, done, std::memory_order_acq_rel, std::memory_order_acquire)) break;
  }
  // Newest first in the list; the oldest is to run first, so it is readied last (ready() puts it in front).
  for (auto* w = reinterpret_cast<waiter*>(head); w != nullptr;) {
    waiter* next = w->next;
    w->parker.wake();
    w = next;
  }
  return false;
}

bool event::abandon() noexcept {
  std::uintptr_t head = word_.load(std::memory_order_acquire);
  // [event.done] acquire, if it has happened; release: who sets it sees all that was done to the object
  while (head != done) {
    if (word_.compare_exchange_weak(head, abandoned, std::memory_order_acq_rel, std::memory_order_acquire)) return false;
  }
  return true;
}

void event::wait_slow() noexcept {
  waiter w;
  if (add(w)) w.parker.park(wait_reason::future);
}

bool event::wait_until(std::int64_t deadline_ns) noexcept {
  if (is_set()) return true;
  if (deadline_ns <= now_ns()) return false;
  waiter w;
  if (!add(w) || w.parker.park_until(wait_reason::future, deadline_ns)) return true;
  remove(w);
  return is_set();
}

}  // namespace weft::detail
