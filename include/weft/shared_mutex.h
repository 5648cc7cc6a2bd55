// shared_mutex: as in std, for goroutines and plain threads alike. Use it with std::shared_lock and std::unique_lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <shared_mutex>  // std::shared_lock, for those who use this

namespace weft {

namespace detail {
struct waiter;
}

// Many readers or one writer. A waiting writer holds back new readers; when a writer leaves, all readers that wait come
// before the next writer. So neither starves the other. Among themselves writers are served as by mutex: whoever comes
// first, but who has waited 1 ms is next.
//
//   word_   writer           held exclusively
//           readers          how many hold it shared (from bit 8); never together with `writer`
//           guard            the queues are being changed (src/sync/guard.h)
//           writers_queued, readers_queued   the queues are not empty. Changed with the guard
//           woken            a writer was woken and is on its way; cleared by it, as it takes the lock or queues again
//           starving         hand over to writers. Set by a writer that queues again; cleared by a writer that was
//           handed the
//                            lock, and with writers_queued
//   New readers queue up if any of writer, writers_queued, readers_queued and woken is set. Readers that wait are let
//   in by the writer that leaves; a writer that waits is handed the lock by the last reader, and woken or handed it by
//   the writer that leaves.
//
//   [shared_mutex.unlock] release: what was done under the lock is visible to who takes it with acquire
class shared_mutex {
 public:
  constexpr shared_mutex() noexcept = default;
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  void lock() noexcept {
    if (!try_lock()) lock_slow();
  }
  bool try_lock() noexcept { return try_take(0); }
  void unlock() noexcept {
    std::uint64_t w = writer;
    // [shared_mutex.unlock]
    if (!word_.compare_exchange_strong(w, 0, std::memory_order_release, std::memory_order_relaxed)) unlock_slow();
  }

  void lock_shared() noexcept {
    if (!try_lock_shared()) lock_shared_slow();
  }
  bool try_lock_shared() noexcept {
    std::uint64_t w = word_.load(std::memory_order_relaxed);
    while ((w & holds_back_readers) == 0) {
      // [shared_mutex.unlock]
      if (word_.compare_exchange_weak(w, w + reader, std::memory_order_acquire, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void unlock_shared() noexcept {
    std::uint64_t w = word_.load(std::memory_order_relaxed);
    while (!last_of_readers_and_awaited(w)) {
      // [shared_mutex.unlock]
      if (word_.compare_exchange_weak(w, w - reader, std::memory_order_release, std::memory_order_relaxed)) return;
    }
    unlock_shared_slow();
  }

 private:
  static constexpr std::uint64_t guard = 1, writer = 2, writers_queued = 4, readers_queued = 8, woken = 16,
                                 starving = 32, reader = 256;
  static constexpr std::uint64_t holds_back_readers = writer | writers_queued | readers_queued | woken;

  static constexpr bool is_free(std::uint64_t w) noexcept { return w < reader && (w & writer) == 0; }
  // Also for a word without readers: the slow path has a word to say about that.
  static constexpr bool last_of_readers_and_awaited(std::uint64_t w) noexcept {
    return w < reader || (w < 2 * reader && (w & (writers_queued | woken)) == writers_queued);
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
  bool spin(std::uint64_t mine) noexcept;
  bool queue_up(detail::waiter& self, std::uint64_t mine, bool starved) noexcept;
  void lock_slow() noexcept;
  void unlock_slow() noexcept;
  void let_next_in() noexcept;
  bool queue_up_shared(detail::waiter& self) noexcept;
  void lock_shared_slow() noexcept;
  void unlock_shared_slow() noexcept;

  std::atomic<std::uint64_t> word_{0};
  detail::waiter* writers_ = nullptr;  // these two: behind the guard
  detail::waiter* readers_ = nullptr;
};

}  // namespace weft
