// shared_mutex: as in std, for goroutines and plain threads alike. Use it with std::shared_lock and std::unique_lock.
#pragma once

#include <atomic>
#include <cstdint>

#include <weft/detail/errno.h>
#include <shared_mutex>  // std::shared_lock, for those who use this

namespace weft {

namespace detail {
class reader_slots;
struct waiter;
class wake_list;
}  // namespace detail

// Many readers or one writer. A waiting writer holds back new readers; when a writer leaves, readers that wait come
// before writers that wait. So neither starves the other. Who comes while the lock is free may take it though others
// were woken for it, but who has waited 1 ms is next.
//
// Readers that get in each other's way spread out: each P then has a counter of its own for them, and reading costs the
// same on any number of Ps. The first time that this happens, the lock allocates a cache line a P (if there is no memory,
// none), which it frees in the end: like other objects, a static one must not be used any more by then.
//
//   word_   writer           held exclusively; or, while there are readers, by a writer that gathers them
//           readers          how many hold it shared (from bit 16), less those whom the slots count
//           guard            the queues are being changed (src/sync/guard.h)
//           writers_queued, readers_queued   the queues are not empty. Changed with the guard
//           woken            a writer was woken and is on its way; cleared by it, as it takes the lock or queues again
//           starving         hand over to writers. Set by a writer that queues again; cleared by one that was handed
//                            the lock, and with writers_queued
//           spread           the slots are open. Never with `writer`, `woken` or anybody queued
//           crowd            how much it would help if readers spread out (bits 8 to 15)
//   New readers queue up if any of writer, writers_queued, readers_queued and woken is set. Readers that wait are let
//   in by the writer that leaves; a writer that waits is handed the lock by the last reader, and woken or handed it by
//   the writer that leaves. How readers spread out and are gathered: src/sync/reader_slots.h.
//
//   [shared_mutex.unlock] release: what was done under the lock is visible to who takes it with acquire
class shared_mutex {
 public:
  constexpr shared_mutex() noexcept = default;
  ~shared_mutex() {
    if (slots_.load(std::memory_order_relaxed) != nullptr) free_slots();
  }
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  void lock() noexcept {
    if (!try_take(0)) lock_slow();
  }
  bool try_lock() noexcept {
    return try_take(0) || ((word_.load(std::memory_order_relaxed) & spread) != 0 && try_lock_spread());
  }
  void unlock() noexcept {
    std::uint64_t w = writer;
    // [shared_mutex.unlock]
    if (slots_.load(std::memory_order_relaxed) != nullptr ||
        !word_.compare_exchange_strong(w, 0, std::memory_order_release, std::memory_order_relaxed)) {
      unlock_slow();
    }
  }

  void lock_shared() noexcept {
    if (!try_lock_alone()) lock_shared_slow();
  }
  bool try_lock_shared() noexcept { return try_lock_alone() || try_lock_shared_slow(); }
  void unlock_shared() noexcept {
    std::uint64_t w = reader;
    // [shared_mutex.unlock]
    if (slots_.load(std::memory_order_relaxed) != nullptr ||
        !word_.compare_exchange_strong(w, 0, std::memory_order_release, std::memory_order_relaxed)) {
      unlock_shared_slow();
    }
  }

 private:
  static constexpr std::uint64_t guard = 1, writer = 2, writers_queued = 4, readers_queued = 8, woken = 16,
                                 starving = 32, spread = 64, crowd_one = 1 << 8, crowd = 255 * crowd_one,
                                 reader = 1 << 16;
  static constexpr std::uint64_t holds_back_readers = writer | writers_queued | readers_queued | woken;

  static constexpr bool has_readers(std::uint64_t w) noexcept { return w >= reader; }
  static constexpr bool is_free(std::uint64_t w) noexcept { return !has_readers(w) && (w & (writer | spread)) == 0; }
  static constexpr std::uint64_t crowd_changed(std::uint64_t w, int by) noexcept;
  static constexpr bool is_crowded(std::uint64_t w) noexcept { return (w & crowd) > crowd / 2; }
  // The word's count is what there is of readers.
  static constexpr bool is_settled(std::uint64_t w) noexcept { return (w & (writer | spread)) == 0; }
  static constexpr bool last_of_readers_and_awaited(std::uint64_t w) noexcept {
    return is_settled(w) && w < 2 * reader && (w & (writers_queued | woken)) == writers_queued;
  }

  // The usual case: nobody else is here, and readers have not spread out.
  bool try_lock_alone() noexcept {
    std::uint64_t w = 0;
    // [shared_mutex.unlock]
    return slots_.load(std::memory_order_relaxed) == nullptr &&
           word_.compare_exchange_strong(w, reader, std::memory_order_acquire, std::memory_order_relaxed);
  }
  bool try_take(std::uint64_t mine) noexcept {
    std::uint64_t w = word_.load(std::memory_order_relaxed);
    while (is_free(w)) {
      // [shared_mutex.unlock]
      if (word_.compare_exchange_weak(w, (w | writer) & ~mine, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  bool glance(std::uint64_t what, std::uint64_t hopeless) const noexcept;
  bool spin(std::uint64_t mine) noexcept;
  bool queue_up(detail::waiter& self, std::uint64_t mine, bool starved) noexcept;
  void lock_slow() noexcept;
  void unlock_slow() noexcept;
  void let_next_in() noexcept;

  std::uint64_t unlink_readers(detail::wake_list& to_wake, bool to_compete) noexcept;
  bool count_in() noexcept;
  bool queue_up_shared(detail::waiter& self) noexcept;
  bool try_lock_shared_slow() noexcept;
  void lock_shared_slow() noexcept;
  void lock_shared_by_word() noexcept;
  void unlock_shared_slow() noexcept;
  void count_out() noexcept;
  void count_out_as_last() noexcept;
  void check_count(std::uint64_t w) const noexcept;

  detail::reader_slots* open_slots(std::int32_t p) const noexcept;
  bool enter_slot() noexcept;
  bool leave_slot() noexcept;
  void spread_out() noexcept;
  bool spread_out_and_unlock() noexcept;
  bool gather() noexcept;
  bool await_readers(detail::waiter& self) noexcept;
  bool try_lock_spread() noexcept;
  void free_slots() noexcept;

  std::atomic<std::uint64_t> word_{0};
  detail::waiter* writers_ = nullptr;  // these two: behind the guard
  detail::waiter* readers_ = nullptr;
  std::atomic<detail::reader_slots*> slots_{nullptr};  // once there, they stay
};

}  // namespace weft
