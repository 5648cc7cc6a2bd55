// The order of a P's timers: a heap, and beside it a wheel for those that are not due soon, if there are many; and a place for
// the newest. Not synchronized: heap.h puts the lock around it.
//
// Few timers are all in the heap, which is in the cache then. What the wheel has comes into the heap when its millisecond has
// come: with settle(), before anything is taken.
//
// Most timers are timeouts of something that does not take long: the timer that was set last is the one that is stopped
// next. So it waits in a place of its own until another one is set, or until it is due, and mostly is gone by then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "timer/quad_heap.h"
#include "timer/wheel.h"

namespace weft::timers {

class order {
 public:
  using item = quad_heap::item;

  bool empty() const noexcept { return newest_ == nullptr && heap_.empty() && wheel_.empty(); }
  std::size_t size() const noexcept { return (newest_ != nullptr ? 1 : 0) + heap_.size() + wheel_.size(); }

  // No timer is due earlier, and if none was removed, one is due then. 0 if there is none.
  std::int64_t first_when() const noexcept {
    const std::int64_t sorted = first_sorted();
    if (newest_ == nullptr) return sorted;
    return sorted == 0 ? newest_when_ : std::min(sorted, newest_when_);
  }

  void insert(timer_node& node, std::int64_t when) noexcept {
    if (newest_ != nullptr) sort_newest();
    newest_ = &node;
    newest_when_ = when;
    quad_heap::set_slot(node, slot_of_newest);
  }

  void remove(timer_node& node) noexcept {
    take_out(node);
    release(node);
  }

  // The timer counts as pending all the time, also to who looks without the lock.
  void rekey(timer_node& node, std::int64_t when) noexcept {
    if (&node == newest_) {
      newest_when_ = when;
    } else if (!heap_.is_lent(node) && !belongs_in_wheel(when)) {
      heap_.rekey(node, when);
    } else {
      take_out(node);
      insert(node, when);
    }
  }

  // After this the heap has all that is due at `now`.
  void settle(std::int64_t now) noexcept {
    if (newest_ != nullptr && newest_when_ <= now) sort_newest();
    if (wheel_.first_when() > now || wheel_.empty()) return;
    wheel_.give_up(now, [this](std::uint32_t slot, std::int64_t when) { heap_.put_back(slot, when); });
  }
  // After settle(now).
  bool has_due(std::int64_t now) const noexcept { return !heap_.empty() && heap_.first_when() <= now; }

  // Removes what is first, without touching the timer, which therefore still counts as pending: insert() it again, or
  // release() it. has_due().
  item take_first() noexcept { return heap_.take_first(); }
  static void release(timer_node& node) noexcept { quad_heap::release(node); }

  // Moves all timers to `to`, calling each(node) for each of them. They count as pending all the time.
  template <class Each>
  void move_to(order& to, Each each) noexcept {
    settle(std::numeric_limits<std::int64_t>::max());
    heap_.move_to(to, each);
  }

  // For tests.
  bool well_formed() const noexcept {
    if (newest_ != nullptr && quad_heap::slot_of(*newest_) != slot_of_newest) return false;
    return heap_.well_formed() && wheel_.well_formed();
  }
  std::size_t capacity() const noexcept { return heap_.capacity() + wheel_.capacity(); }
  std::size_t in_wheel() const noexcept { return wheel_.size(); }

 private:
  // As many as the heap holds in the nearest cache.
  static constexpr std::size_t enough_in_heap = 256;

  // Of no timer in the heap: it has less than that.
  static constexpr std::uint32_t slot_of_newest = std::numeric_limits<std::uint32_t>::max();

  void take_out(timer_node& node) noexcept {
    if (&node == newest_) {
      newest_ = nullptr;
    } else if (heap_.is_lent(node)) {
      wheel_.remove(quad_heap::slot_of(node));
      heap_.end_loan(node);
    } else {
      heap_.take_out(node);
    }
  }

  std::int64_t first_sorted() const noexcept {
    if (wheel_.empty()) return heap_.first_when();
    return heap_.empty() ? wheel_.first_when() : std::min(heap_.first_when(), wheel_.first_when());
  }

  [[gnu::noinline]] void sort_newest() noexcept {
    timer_node& node = *std::exchange(newest_, nullptr);
    if (belongs_in_wheel(newest_when_)) {
      wheel_.insert(heap_.lend_slot(node), newest_when_);
    } else {
      heap_.insert(node, newest_when_);
    }
  }

  bool belongs_in_wheel(std::int64_t when) noexcept {
    if (heap_.size() < enough_in_heap) return false;
    if (wheel_.empty()) wheel_.begin_after(heap_.first_when());
    return wheel_.takes(when);
  }

  timer_node* newest_ = nullptr;  // neither in the heap nor in the wheel
  std::int64_t newest_when_ = 0;
  quad_heap heap_;
  wheel wheel_;
};

}  // namespace weft::timers
