// Those who wait on a synchronization primitive: one record a waiter, on its own stack, linked into the primitive.
//
// Who may touch a waiter:
//   linked    whoever holds the guard of the primitive (guard.h)
//   unlinked  the one who unlinked it. If that is a waker, it may touch the record until it has called parker.wake(),
//   and
//             nothing of the primitive after the store that let go of the guard: whoever it wakes may destroy both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sched/parker.h"

namespace weft::detail {

struct waiter {
  waiter* next = nullptr;  // null: not linked
  waiter* prev = nullptr;
  bool granted = false;  // the waker has given it what it waits for (written before parker.wake())
  bool insists = false;  // it has waited for long and is not to be woken in vain
  sched::parker parker;

  bool linked() const noexcept { return next != nullptr; }
};

class wake_list;

// First in, first out, and out from anywhere; a circle behind one pointer, which is all that a primitive has to hold.
// The caller holds the guard.
class wait_queue {
 public:
  explicit wait_queue(waiter*& head) noexcept : head_(head) {}

  bool empty() const noexcept { return head_ == nullptr; }

  void push_back(waiter& w) noexcept {
    if (head_ == nullptr) {
      w.next = w.prev = head_ = &w;
      return;
    }
    w.next = head_;
    w.prev = head_->prev;
    head_->prev->next = &w;
    head_->prev = &w;
  }

  void push_front(waiter& w) noexcept {
    push_back(w);
    head_ = &w;
  }

  void remove(waiter& w) noexcept {
    if (w.next == &w) {
      head_ = nullptr;
    } else {
      w.prev->next = w.next;
      w.next->prev = w.prev;
      if (head_ == &w) head_ = w.next;
    }
    w.next = w.prev = nullptr;
  }

  waiter* pop() noexcept {
    waiter* w = head_;
    if (w != nullptr) remove(*w);
    return w;
  }

  // The first that can make use of it; those that are frozen, and stood in front of it, are woken too, and try again when they can.
  waiter* pop_able(wake_list& frozen) noexcept;

 private:
  waiter*& head_;
};

// Waiters that were unlinked and are to be woken once the guard is free. Linked by `next`, ended by null.
class wake_list {
 public:
  void add(waiter& w) noexcept {
    w.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &w;
    last_ = &w;
  }

  // In the order of their coming.
  void wake_all() noexcept {
    for (waiter* w = first_; w != nullptr;) {
      waiter* next = w->next;  // the record is gone once it is woken
      w->parker.wake();
      w = next;
    }
  }

 private:
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

inline waiter* wait_queue::pop_able(wake_list& frozen) noexcept {
  for (;;) {
    waiter* const w = pop();
    if (w == nullptr || !w->parker.is_frozen()) return w;
    frozen.add(*w);
  }
}

}  // namespace weft::detail
