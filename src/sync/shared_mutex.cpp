#include <weft/shared_mutex.h>

#include <weft/go.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/delay.h"
#include "base/fatal.h"
#include "sched/finishing.h"
#include "sched/section.h"
#include "sync/guard.h"
#include "sync/reader_slots.h"
#include "sync/spin.h"
#include "sync/waiter.h"

namespace weft {

using detail::reader_slots;
using detail::wait_queue;
using detail::waiter;

namespace {

constexpr std::int64_t starvation_ns = 1'000'000;

// With more Ps than this some share a slot: a writer looks at all of them.
constexpr int most_slots = 64;

// A writer and its readers move each slot's cache line twice. That is paid back by so many reads that moved none.
constexpr std::uint64_t reads_worth_a_slot = 8;

// What changes `crowd`: readers that were in each other's way, and one that was in nobody's; a writer that has seen whether it
// was worth while to spread out. Some processors let a core that has a cache line keep it for a dozen operations or two: then only
// one attempt in so many fails, and each of these costs as much as all the others.
constexpr int met = 32, did_not_meet = -1, was_worth_it = 64, was_not_worth_it = -64;

constexpr const char* unlock_shared_of_unlocked = "sync: unlock_shared of unlocked shared_mutex";

// The P that the caller is on, or was on just now; less than 0 on a plain thread.
[[gnu::always_inline]] inline std::int32_t current_p() noexcept {
  gmp::machine* m = gmp::current_machine();
  return m == nullptr ? -1 : m->last_p.load(std::memory_order_relaxed);
}

}  // namespace

// Whether the word is soon without any of the bits `what`; not, once it has one of `hopeless`.
bool shared_mutex::glance(std::uint64_t what, std::uint64_t hopeless) const noexcept {
  const auto has = [this](std::uint64_t bits) { return (word_.load(std::memory_order_relaxed) & bits) != 0; };
  return detail::glance([&] { return !has(what); }, [&] { return !has(hopeless); });
}

// ---- writers. `mine` is `woken` if that stands for this waiter, else 0

bool shared_mutex::spin(std::uint64_t mine) noexcept {
  for (int i = 0; i < detail::spin_rounds && detail::spinning_may_help(); ++i) {
    detail::spin_one_round();
    if (try_take(mine)) return true;
    if ((word_.load(std::memory_order_relaxed) & (starving | spread)) != 0) return false;
  }
  return false;
}

// True: in the queue, and somebody who will see it holds the lock. False: it was free after all, and is ours.
bool shared_mutex::queue_up(waiter& self, std::uint64_t mine, bool starved) noexcept {
  if (gather()) return await_readers(self);
  // Another writer that is inside leaves soon; one that waits does not.
  if (mine == 0 && glance(writer, writers_queued | readers_queued | woken)) {
    if (try_take(0)) return false;
    if (gather()) return await_readers(self);
  }
  sched::section section;
  wait_queue queue(writers_);
  std::uint64_t w = detail::take_guard(word_, guard);
  for (;;) {
    base::delay();
    if ((w & spread) != 0) {  // nobody would see us; and with `spread` nothing can be `mine`
      detail::release_guard(word_, guard);
      if (gather()) return await_readers(self);
      w = detail::take_guard(word_, guard);
      continue;
    }
    if (is_free(w)) {
      // [shared_mutex.unlock], [guard]
      if (word_.compare_exchange_weak(w, (w | writer) & ~(guard | mine), std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        return false;
      }
      continue;
    }
    // Who was woken in vain stands in front again, where it was.
    if (mine != 0) {
      queue.push_front(self);
    } else {
      queue.push_back(self);
    }
    const std::uint64_t next = (w & ~(guard | mine)) | writers_queued | (starved ? starving : 0);
    if (word_.compare_exchange_strong(w, next, std::memory_order_release, std::memory_order_relaxed))
      return true;  // [guard]
    queue.remove(self);
  }
}

void shared_mutex::lock_slow() noexcept {
  if (spin(0)) return;
  const std::int64_t since = detail::now_ns();
  std::uint64_t mine = 0;
  for (bool starved = false;;) {
    waiter self;
    if (!queue_up(self, mine, starved)) return;
    self.parker.park(detail::wait_reason::rwmutex_lock);
    starved = detail::now_ns() - since >= starvation_ns;
    if (self.granted) {
      if (!starved) word_.fetch_and(~starving, std::memory_order_relaxed);
      return;
    }
    mine = woken;
    if (try_take(mine) || (!starved && spin(mine))) return;
  }
}

// A writer leaves, and somebody waits. Readers come before the next writer. If no writer waits they are only woken, but
// for those who insist: were the lock given to them all, then the next writer, and behind it everybody else, would have
// to wait until each of them has had its turn to run, and so it would go on.
void shared_mutex::let_next_in() noexcept {
  const sched::finishing section;
  wait_queue writers(writers_);
  detail::wake_list next;
  std::uint64_t w = detail::take_guard(word_, guard) & ~guard;
  const bool to_compete = (w & (writers_queued | woken)) == 0;
  const std::uint64_t admitted = unlink_readers(next, to_compete);
  if (to_compete || admitted != 0) {
    w = (w & ~(writer | readers_queued)) + admitted;
  } else {
    waiter* first = writers.pop_able(next);
    if (first != nullptr) {
      next.add(*first);
      first->granted = (w & starving) != 0;
    }
    if (first == nullptr) {  // all are frozen
      w &= ~writer;
    } else if (!first->granted) {
      w = (w & ~writer) | woken;
    }
    w &= ~readers_queued;
    if (writers.empty()) w &= ~(writers_queued | starving);
  }
  // Nobody else changes the word while both the guard and the lock are ours.
  detail::release_guard(word_, guard, [&](std::uint64_t) { return w; });  // [shared_mutex.unlock]
  next.wake_all();
}

void shared_mutex::unlock_slow() noexcept {
  std::uint64_t w = word_.load(std::memory_order_relaxed);
  for (;;) {
    if ((w & writer) == 0) base::fatal("sync: unlock of unlocked shared_mutex");
    // Who was woken wakes the next one; not so if it is frozen.
    const bool writer_is_due = (w & writers_queued) != 0 && ((w & woken) == 0 || (w & starving) != 0 || sched::is_world_frozen());
    if ((w & readers_queued) != 0 || writer_is_due) return let_next_in();
    if (is_crowded(w) && (w & woken) == 0 && slots_.load(std::memory_order_relaxed) != nullptr) {
      if (spread_out_and_unlock()) return;
      w = word_.load(std::memory_order_relaxed);
      continue;
    }
    base::delay();
    // [shared_mutex.unlock]
    if (word_.compare_exchange_weak(w, w & ~writer, std::memory_order_release, std::memory_order_relaxed)) break;
  }
  // The writer that was woken may need this P.
  checkpoint();
}

// ---- readers

constexpr std::uint64_t shared_mutex::crowd_changed(std::uint64_t w, int by) noexcept {
  const int now = static_cast<int>((w & crowd) / crowd_one);
  return (w & ~crowd) | static_cast<std::uint64_t>(std::clamp(now + by, 0, static_cast<int>(crowd / crowd_one))) * crowd_one;
}

// In a section, with the guard. Returns what those add to the word to whom the lock is given: all but who are
// `to_compete`.
std::uint64_t shared_mutex::unlink_readers(detail::wake_list& to_wake, bool to_compete) noexcept {
  wait_queue readers(readers_);
  std::uint64_t admitted = 0;
  while (waiter* r = readers.pop()) {
    to_wake.add(*r);
    r->granted = (r->insists || !to_compete) && !r->parker.is_frozen();
    if (r->granted) admitted += reader;
  }
  return admitted;
}

// The slots, if they seem to be open and one is the caller's.
[[gnu::always_inline]] inline reader_slots* shared_mutex::open_slots(std::int32_t p) const noexcept {
  return (word_.load(std::memory_order_relaxed) & spread) != 0 && p >= 0 ? slots_.load(std::memory_order_acquire)
                                                                         : nullptr;
}

// True: may read. False: not so.
[[gnu::always_inline]] inline bool shared_mutex::enter_slot() noexcept {
  const std::int32_t p = current_p();
  reader_slots* slots = open_slots(p);
  if (slots == nullptr || !slots->enter(p)) return false;
  base::delay();
  if ((word_.load(std::memory_order_acquire) & spread) != 0) [[likely]]  // [shared_mutex.unlock]
    return true;
  unlock_shared();
  return false;
}

// True: has left. False: not so.
[[gnu::always_inline]] inline bool shared_mutex::leave_slot() noexcept {
  const std::int32_t p = current_p();
  reader_slots* slots = open_slots(p);
  return slots != nullptr && slots->leave(p);
}

// By the word. True: may read.
bool shared_mutex::count_in() noexcept {
  std::uint64_t w = word_.load(std::memory_order_relaxed);
  bool crowded = false;
  for (;;) {
    if ((w & holds_back_readers) != 0) return false;
    const std::uint64_t next = crowd_changed(w + reader, crowded ? met : did_not_meet);
    base::delay();
    // [shared_mutex.unlock]
    if (word_.compare_exchange_strong(w, next, std::memory_order_acquire, std::memory_order_relaxed)) {
      if (crowded && is_crowded(next) && (next & spread) == 0 && current_p() >= 0) spread_out();
      return true;
    }
    crowded = true;
  }
}

// True: may read. False: in the queue.
bool shared_mutex::queue_up_shared(waiter& self) noexcept {
  sched::section section;
  wait_queue queue(readers_);
  std::uint64_t w = detail::take_guard(word_, guard);
  for (;;) {
    base::delay();
    if ((w & holds_back_readers) == 0) {
      // [shared_mutex.unlock], [guard]
      if (word_.compare_exchange_weak(w, (w + reader) & ~guard, std::memory_order_acq_rel, std::memory_order_relaxed))
        return true;
      continue;
    }
    queue.push_back(self);
    const std::uint64_t next = (w | readers_queued) & ~guard;
    if (word_.compare_exchange_strong(w, next, std::memory_order_release, std::memory_order_relaxed))
      return false;  // [guard]
    queue.remove(self);
  }
}

bool shared_mutex::try_lock_shared_slow() noexcept { return enter_slot() || count_in(); }

void shared_mutex::lock_shared_slow() noexcept {
  if (!enter_slot()) lock_shared_by_word();
}

void shared_mutex::lock_shared_by_word() noexcept {
  if (count_in()) return;
  for (std::int64_t since = 0;;) {
    if (glance(holds_back_readers, holds_back_readers & ~writer) && try_lock_shared_slow()) return;
    waiter self;
    const std::int64_t now = detail::now_ns();
    if (since == 0) since = now;
    self.insists = now - since >= starvation_ns;
    if (queue_up_shared(self)) return;
    self.parker.park(detail::wait_reason::rwmutex_rlock);
    if (self.granted || try_lock_shared_slow()) return;
  }
}

void shared_mutex::unlock_shared_slow() noexcept {
  if (!leave_slot()) count_out();
}

// By the word.
void shared_mutex::count_out() noexcept {
  // acquire: who has made the count too low has seen the slots, so check_count() does too
  std::uint64_t w = word_.load(std::memory_order_acquire);
  while (!last_of_readers_and_awaited(w)) {
    check_count(w);
    base::delay();
    // [shared_mutex.unlock]
    if (word_.compare_exchange_weak(w, w - reader, std::memory_order_release, std::memory_order_acquire)) return;
  }
  count_out_as_last();
}

// The last reader leaves, and a writer waits: it gets the lock.
void shared_mutex::count_out_as_last() noexcept {
  const sched::finishing section;
  wait_queue writers(writers_);
  std::uint64_t w = detail::take_guard(word_, guard);
  // With the guard held no writer comes or goes, and with the bits above no reader comes; but one may have before.
  waiter* first = nullptr;
  detail::wake_list woken_in_vain;  // and readers, if no writer can make use of the lock
  std::uint64_t admitted = 0;
  for (bool is_decided = false;;) {
    check_count(w);
    std::uint64_t next = (w - reader) & ~guard;
    if (last_of_readers_and_awaited(w)) {
      if (!std::exchange(is_decided, true)) {
        first = writers.pop_able(woken_in_vain);
        if (first == nullptr) admitted = unlink_readers(woken_in_vain, false);
        if (first != nullptr) first->granted = true;
      }
      next = first != nullptr ? next | writer : (next & ~readers_queued) + admitted;
      if (writers.empty()) next &= ~(writers_queued | starving);
    }
    // [shared_mutex.unlock]
    if (word_.compare_exchange_weak(w, next, std::memory_order_acq_rel, std::memory_order_relaxed)) break;
  }
  if (first != nullptr) first->parker.wake();
  woken_in_vain.wake_all();
}

// A reader is about to leave by the word `w`.
void shared_mutex::check_count(std::uint64_t w) const noexcept {
  if (has_readers(w) || (!is_settled(w) && slots_.load(std::memory_order_relaxed) != nullptr)) return;
  base::fatal(unlock_shared_of_unlocked);
}

// ---- readers that spread out (reader_slots.h)

// By a reader, who holds the lock and has seen a crowd.
void shared_mutex::spread_out() noexcept {
  reader_slots* slots = slots_.load(std::memory_order_acquire);
  if (slots == nullptr) {
    std::unique_ptr<reader_slots> fresh;
    try {
      fresh = std::make_unique<reader_slots>(
          static_cast<std::size_t>(std::clamp(sched::sched.procs.load(std::memory_order_relaxed), 1, most_slots)));
    } catch (const std::bad_alloc&) {
      return;
    }
    if (slots_.compare_exchange_strong(slots, fresh.get(), std::memory_order_acq_rel)) slots = fresh.release();
  }
  sched::section section;
  // If no writer is on its way, then none is inside, and because of this reader none will be until there is `spread`.
  const auto possible = detail::take_guard_if(
      word_, guard, [](std::uint64_t w) { return (w & (holds_back_readers | spread)) == 0; },
      [](std::uint64_t w) { return w | guard | spread; });
  if (!possible) return;
  slots->open();
  detail::release_guard(word_, guard);
}

// By a writer, who holds the lock and need not spread them if somebody waits; then it is false, and nothing has
// happened.
bool shared_mutex::spread_out_and_unlock() noexcept {
  const sched::finishing_quietly section;  // the lock may be ours yet
  const bool possible = (detail::take_guard(word_, guard) & (writers_queued | readers_queued | woken)) == 0;
  reader_slots* slots = slots_.load(std::memory_order_relaxed);
  const int by = slots->entries() >= reads_worth_a_slot * slots->count() ? was_worth_it : was_not_worth_it;
  if (possible) slots->open();
  detail::release_guard(word_, guard, [possible, by](std::uint64_t now) {  // [shared_mutex.unlock]
    return possible ? crowd_changed((now & ~writer) | spread, by) : now;
  });
  return possible;
}

// True: `writer` is the caller's, and the readers that are still inside are all counted in the word. False: they had
// not spread out.
bool shared_mutex::gather() noexcept {
  if ((word_.load(std::memory_order_relaxed) & spread) == 0) return false;
  const sched::finishing_quietly section;  // all wait for us meanwhile, and afterwards
  // Not with another's guard: that may be opening the slots.
  const auto ours = detail::take_guard_if(
      word_, guard, [](std::uint64_t w) { return (w & spread) != 0; },
      [](std::uint64_t w) { return (w & ~spread) | writer; });
  if (!ours) return false;
  reader_slots* slots = slots_.load(std::memory_order_relaxed);
  const std::int64_t readers = slots->close();
  if (readers != 0 || has_readers(word_.load(std::memory_order_acquire))) {
    const std::uint64_t change = static_cast<std::uint64_t>(readers) * reader;
    // [shared_mutex.unlock] acquire: of readers that left by the word
    const std::uint64_t settled = word_.fetch_add(change, std::memory_order_acquire) + change;
    if (static_cast<std::int64_t>(settled) < 0) base::fatal(unlock_shared_of_unlocked);
  }
  return true;
}

// After gather(). False: no reader is left, the lock is ours. True: in the queue, where the last reader will see it.
bool shared_mutex::await_readers(waiter& self) noexcept {
  // [shared_mutex.unlock]
  const auto readers_are_gone = [this] { return !has_readers(word_.load(std::memory_order_acquire)); };
  if (readers_are_gone() || detail::glance(readers_are_gone, [] { return true; })) return false;
  sched::section section;
  wait_queue queue(writers_);
  std::uint64_t w = detail::take_guard(word_, guard);
  for (;;) {
    base::delay();
    const bool wait = has_readers(w);
    if (wait) queue.push_front(self);
    const std::uint64_t next = wait ? (w & ~(guard | writer)) | writers_queued : w & ~guard;
    // [shared_mutex.unlock], [guard]
    if (word_.compare_exchange_strong(w, next, std::memory_order_acq_rel, std::memory_order_relaxed)) return wait;
    if (wait) queue.remove(self);
  }
}

bool shared_mutex::try_lock_spread() noexcept {
  if (!gather()) return false;
  const sched::finishing section;
  detail::wake_list next;
  std::uint64_t w = detail::take_guard(word_, guard);
  const std::uint64_t admitted = has_readers(w) ? unlink_readers(next, false) : 0;
  for (;;) {
    base::delay();
    const bool taken = !has_readers(w) && admitted == 0;
    // [shared_mutex.unlock], [guard]
    if (word_.compare_exchange_weak(w, taken ? w & ~guard : (w & ~(guard | writer | readers_queued)) + admitted,
                                    std::memory_order_acq_rel, std::memory_order_relaxed)) {
      next.wake_all();
      return taken;
    }
  }
}

void shared_mutex::free_slots() noexcept { delete slots_.load(std::memory_order_relaxed); }

}  // namespace weft
