#include "timer/heap.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/backoff.h"
#include "base/delay.h"
#include "base/fatal.h"

namespace weft::timers {
namespace {

constexpr std::int64_t last_when = std::numeric_limits<std::int64_t>::max();

// The next multiple of the period that lies after `now`.
std::int64_t next_period(std::int64_t when, std::int64_t period, std::int64_t lateness) noexcept {
  std::int64_t step = 0, next = 0;
  if (__builtin_mul_overflow(period, 1 + lateness / period, &step)) return last_when;
  return __builtin_add_overflow(when, step, &next) ? last_when : next;
}

}  // namespace

void timer_node::destroyed_while_pending() const noexcept {
  base::fatal("timer ", static_cast<const void*>(this), " is destroyed while it is pending, in slot ",
              slot_.load(std::memory_order_relaxed), " of its heap; expected: idle");
}

heap::~heap() {
  const std::size_t left = size();
  if (left != 0) base::fatal("a timer heap is destroyed with ", std::uint64_t{left}, " timers in it; expected: none");
}

std::size_t heap::size() noexcept {
  base::lock_guard guard(lock_);
  return order_.size();
}

void heap::reopen() noexcept {
  base::lock_guard guard(lock_);
  moved_to_ = nullptr;
}

// ---- finding a node's heap -----------------------------------------------------------------------------------------

// The node's home, locked: until it is unlocked, the node stays there. Null for a fresh node.
heap* heap::lock_home(timer_node& node) noexcept WEFT_NO_LOCK_ANALYSIS {
  for (;;) {
    heap* home = node.home_.load(std::memory_order_acquire);  // [timer.home]
    if (home == nullptr) return nullptr;
    base::delay();
    home->lock_.lock();
    // Acquire again: the node may have been away and come back since, which the lock of this heap did not see.
    if (node.home_.load(std::memory_order_acquire) == home) return home;  // [timer.home]
    home->lock_.unlock();
  }
}

// Where a node whose home this is should go instead before it is made pending; null if it stays.
heap* heap::better_home(heap* wanted, const timer_node& node) const noexcept {
  if (moved_to_ != nullptr) return moved_to_;
  const bool bound = wanted == nullptr || node.pending() || is_calling(node);
  return bound || wanted == this ? nullptr : wanted;
}

armed heap::arm(heap* wanted, timer_node& node, const deadline& d) noexcept WEFT_NO_LOCK_ANALYSIS {
  for (;;) {
    heap* home = lock_home(node);
    if (home == nullptr) {
      if (wanted == nullptr) base::fatal("reset of timer ", static_cast<const void*>(&node), ", which was never added");
      // Either this thread is the first, or another one has just been. Release: [timer.home]
      node.home_.compare_exchange_strong(home, wanted, std::memory_order_release, std::memory_order_relaxed);
      continue;
    }
    if (heap* better = home->better_home(wanted, node)) {
      wanted = better;  // and not back again, if the wanted heap is the one that has moved
      node.home_.store(better, std::memory_order_release);  // [timer.home]
      home->lock_.unlock();
      continue;
    }
    const armed result = home->arm_here(node, d);
    home->lock_.unlock();
    return result;
  }
}

armed heap::arm_fresh(heap* wanted, timer_node& node, std::int64_t when) noexcept WEFT_NO_LOCK_ANALYSIS {
  for (;;) {
    node.home_.store(wanted, std::memory_order_release);  // [timer.home]
    wanted->lock_.lock();
    heap* const other = wanted->moved_to_;
    if (other == nullptr) break;
    wanted->lock_.unlock();
    wanted = other;
  }
  const bool is_first = wanted->insert(node, std::max<std::int64_t>(when, 1));
  wanted->lock_.unlock();
  return {false, is_first};
}

// ---- under the lock ------------------------------------------------------------------------------------------------

inline armed heap::arm_here(timer_node& node, const deadline& d) noexcept {
  if (node.stoppers_ != 0) [[unlikely]] {
    node.refused_ = true;
    return {false, false};
  }
  const bool was_pending = node.pending();
  const std::int64_t when = std::max<std::int64_t>(d.when, 1);
  node.period_ = d.period;
  node.seq_ = d.seq;
  if (was_pending) {
    order_.rekey(node, when);
    return {true, publish()};
  }
  return {false, insert(node, when)};
}

inline bool heap::disarm(timer_node& node) noexcept {
  if (!node.pending()) return false;
  order_.remove(node);
  // Most timers are stopped, and another one is set soon: next_when_ may stay, and then that one does not come first. Who
  // reads the earlier time looks once in vain.
  first_may_be_stopped_.store(true, std::memory_order_relaxed);
  return true;
}

// For stop_sync(): whether it must wait, and look again. Until it need not, nobody can make the node pending: else a
// callback that does so each time could begin anew between any two looks.
bool heap::disarm_for_good(timer_node& node, bool waited, bool& stopped) noexcept {
  stopped |= disarm(node);
  const bool calling = is_calling(node);
  if (calling && !waited) ++node.stoppers_;
  if (!calling && waited) {
    stopped |= std::exchange(node.refused_, false);
    --node.stoppers_;
  }
  return calling;
}

// True if the earliest deadline came down: only then do sleepers care, and only then is there a store, which is a costly one.
inline bool heap::insert(timer_node& node, std::int64_t when) noexcept {
  order_.insert(node, when);
  const std::int64_t first = next_when_.load(std::memory_order_relaxed);
  if (first != 0 && first <= when) return false;
  store_earlier(when);
  return true;
}

inline void heap::store_earlier(std::int64_t when) noexcept {
  next_when_.store(when, std::memory_order_seq_cst);  // [timer.next]
  if (listed_.load(std::memory_order_relaxed)) [[likely]] return;
  base::delay();
  mask_->fetch_or(bit_, std::memory_order_seq_cst);  // [timer.mask]
  listed_.store(true, std::memory_order_relaxed);
}

void heap::list_in(std::atomic<std::uint64_t>& mask, std::uint64_t bit) noexcept {
  mask_ = &mask;
  bit_ = bit;
  listed_.store(false, std::memory_order_relaxed);
}

void heap::unlist() noexcept {
  base::lock_guard guard(lock_);
  if (mask_ == nullptr || order_.size() != 0 || next_when_.load(std::memory_order_relaxed) != 0) return;
  listed_.store(false, std::memory_order_relaxed);
  mask_->fetch_and(~bit_, std::memory_order_seq_cst);  // [timer.mask]
}

// After any other change; true as above.
inline bool heap::publish() noexcept {
  const std::int64_t now_first = order_.first_when();
  const std::int64_t was_first = next_when_.load(std::memory_order_relaxed);
  if (first_may_be_stopped_.load(std::memory_order_relaxed)) first_may_be_stopped_.store(false, std::memory_order_relaxed);
  if (now_first == was_first) return false;
  if (now_first == 0 || (was_first != 0 && now_first > was_first)) {
    next_when_.store(now_first, std::memory_order_relaxed);  // who reads the older one looks once in vain
    return false;
  }
  store_earlier(now_first);
  return true;
}

void heap::look_again() noexcept {
  base::lock_guard guard(lock_);
  publish();
}

bool heap::is_calling(const timer_node& node) const noexcept {
  for (const batch* b = calls_; b != nullptr; b = b->next) {
    for (std::uint32_t i = b->done.load(std::memory_order_acquire); i < b->size; ++i) {  // [timer.done]
      if (b->timers[i].node == &node) return true;
    }
  }
  return false;
}

// ---- running -------------------------------------------------------------------------------------------------------

ran heap::run(std::int64_t now, std::uint32_t max) noexcept {
  std::int64_t first;
  if (!is_due(now, first)) return {first, 0};
  base::lock_guard guard(lock_);
  return run_locked(now, max);
}

ran heap::run_if_free(std::int64_t now) noexcept {
  std::int64_t first;
  if (!is_due(now, first) || !lock_.try_lock()) return {first, 0};
  const ran result = run_locked(now, std::numeric_limits<std::uint32_t>::max());
  lock_.unlock();
  return result;
}

ran heap::run_locked(std::int64_t now, std::uint32_t max) noexcept {
  batch b;
  b.next = calls_;
  calls_ = &b;
  const std::size_t limit = std::min<std::size_t>(max, order_.size());
  std::uint32_t count = 0;
  while (count < limit && !moving_) {
    take_due(b, now, limit - count);
    if (b.size == 0) break;
    count += b.size;
    lock_.unlock();
    b.call_all();
    lock_.lock();
  }
  finish(b);
  publish();  // a callback may have stopped the first one
  return {next_when_.load(std::memory_order_relaxed), count};
}

// First the order alone, then the timers, in a loop that does nothing else: they are cold, and their cache misses
// overlap. This halves the cost of waking 10^5 sleepers.
void heap::take_due(batch& b, std::int64_t now, std::size_t max) noexcept {
  order::item items[batch::capacity];
  std::uint32_t n = 0;
  order_.settle(now);
  while (n < std::min<std::size_t>(max, batch::capacity) && order_.has_due(now)) {
    items[n++] = order_.take_first();
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    timer_node& node = *items[i].node;
    const std::int64_t lateness = now - items[i].when;
    b.timers[i] = {&node, node.fn_, node.arg_, node.seq_, lateness};
    __builtin_prefetch(node.arg_);
    if (node.period_ > 0) {
      order_.insert(node, next_period(items[i].when, node.period_, lateness));
    } else {
      order::release(node);
    }
  }
  b.size = n;
  b.done.store(0, std::memory_order_relaxed);
  publish();  // also if nothing was due: the first deadline may have been that of a timer which was stopped
}

// Without the lock; and without the nodes, which may be gone as soon as their callback is entered.
void heap::batch::call_all() noexcept {
  for (std::uint32_t i = 0; i < size; ++i) {
    base::delay();
    timers[i].fn(timers[i].arg, timers[i].seq, timers[i].lateness);
    done.store(i + 1, std::memory_order_release);  // [timer.done] what the callback did, to who has waited for its end
  }
}

void heap::finish(batch& b) noexcept {
  batch** link = &calls_;
  while (*link != &b) link = &(*link)->next;
  *link = b.next;
}

// ---- a P goes away -------------------------------------------------------------------------------------------------

// stop_sync() looks for a running callback in the node's home only, so no node may leave while this heap calls.
void heap::wait_for_calls() noexcept {
  moving_ = true;
  for (base::backoff wait; calls_ != nullptr;) {
    lock_.unlock();
    wait.once();
    lock_.lock();
  }
}

bool heap::take_all(heap& from) noexcept {
  from.order_.move_to(order_, [this](timer_node& node) {
    node.home_.store(this, std::memory_order_release);  // [timer.home]
  });
  from.publish();
  from.moving_ = false;
  from.moved_to_ = this;
  moved_to_ = nullptr;  // whoever is given timers is there to run them; and so the moves never form a ring
  return publish();
}

bool move_all(heap& from, heap& to) noexcept WEFT_NO_LOCK_ANALYSIS {
  if (&from == &to) base::fatal("the timers of a heap are moved to itself");
  {
    base::lock_guard guard(from.lock_);
    from.wait_for_calls();
  }
  // Two locks of one rank: in the order of their addresses.
  base::lock_guard first(std::less<>{}(&from, &to) ? from.lock_ : to.lock_);
  base::lock_guard second(std::less<>{}(&from, &to) ? to.lock_ : from.lock_);
  return to.take_all(from);
}

// ---- what everybody calls ------------------------------------------------------------------------------------------

armed add(heap& wanted, timer_node& node, std::int64_t when, std::int64_t period, std::uint64_t seq) noexcept {
  return heap::arm(&wanted, node, {when, period, seq});
}

armed add_fresh(heap& wanted, timer_node& node, std::int64_t when) noexcept { return heap::arm_fresh(&wanted, node, when); }

armed reset(timer_node& node, std::int64_t when, std::int64_t period, std::uint64_t seq) noexcept {
  return heap::arm(nullptr, node, {when, period, seq});
}

bool stop(timer_node& node) noexcept WEFT_NO_LOCK_ANALYSIS {
  if (!node.pending()) return false;
  heap* home = heap::lock_home(node);
  if (home == nullptr) return false;
  const bool stopped = home->disarm(node);
  home->lock_.unlock();
  return stopped;
}

bool stop_sync(timer_node& node) noexcept WEFT_NO_LOCK_ANALYSIS {
  bool stopped = false;
  bool waited = false;
  for (base::backoff wait;; wait.once()) {
    heap* home = heap::lock_home(node);
    if (home == nullptr) return false;
    const bool waits = home->disarm_for_good(node, waited, stopped);
    home->lock_.unlock();
    if (!waits) return stopped;
    waited = true;
  }
}

}  // namespace weft::timers
