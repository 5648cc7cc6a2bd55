// The order of a P's timers: a heap, and beside it a wheel for those that are not due soon, if there are many. Not
// synchronized: heap.h puts the lock around it.
//
// Few timers are all in the heap, which is in the cache then. What the wheel has comes into the heap when its millisecond has
// come: with settle(), before anything is taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "timer/quad_heap.h"
#include "timer/wheel.h"

namespace weft::timers {

class order {
 public:
  using item = quad_heap::item;

  bool empty() const noexcept { return heap_.empty() && wheel_.empty(); }
  std::size_t size() const noexcept { return heap_.size() + wheel_.size(); }

  // No timer is due earlier, and if none was removed, one is due then. 0 if there is none.
  std::int64_t first_when() const noexcept {
    if (wheel_.empty()) return heap_.first_when();
    return heap_.empty() ? wheel_.first_when() : std::min(heap_.first_when(), wheel_.first_when());
  }

  void insert(timer_node& node, std::int64_t when) noexcept {
    if (belongs_in_wheel(when)) {
      wheel_.insert(heap_.lend_slot(node), when);
    } else {
      heap_.insert(node, when);
    }
  }

  void remove(timer_node& node) noexcept {
    if (heap_.is_lent(node)) {
      wheel_.remove(quad_heap::slot_of(node));
      heap_.end_loan(node);
    } else {
      heap_.remove(node);
    }
  }

  void rekey(timer_node& node, std::int64_t when) noexcept {
    if (!heap_.is_lent(node) && !belongs_in_wheel(when)) return heap_.rekey(node, when);
    remove(node);
    insert(node, when);
  }

  // After this the heap has all that is due at `now`.
  void settle(std::int64_t now) noexcept {
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
  bool well_formed() const noexcept { return heap_.well_formed() && wheel_.well_formed(); }
  std::size_t capacity() const noexcept { return heap_.capacity() + wheel_.capacity(); }
  std::size_t in_wheel() const noexcept { return wheel_.size(); }

 private:
  // As many as the heap holds in the nearest cache.
  static constexpr std::size_t enough_in_heap = 256;

  bool belongs_in_wheel(std::int64_t when) noexcept {
    if (heap_.size() < enough_in_heap) return false;
    if (wheel_.empty()) wheel_.begin_after(heap_.first_when());
    return wheel_.takes(when);
  }

  quad_heap heap_;
  wheel wheel_;
};

}  // namespace weft::timers
