// pool: Go's sync.Pool. Keeps objects that are costly to make, near the P where they were last used.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace weft {

namespace detail {

// Pointers, cached per P. A P's cache is touched only by who runs on that P, in a section, without a lock or an atomic
// instruction. When it is full, half of it goes to the shared stack; when it is empty, up to as many come from there.
// Plain threads use the shared stack at once. What does not fit there is not kept.
//
// Caches belong to numbers of Ps, not to Ps: when there are fewer Ps than before, the caches of the others wait for
// them to come back (or for the end of the pool).
class pool_core {
 public:
  pool_core() noexcept = default;
  pool_core(const pool_core&) = delete;
  pool_core& operator=(const pool_core&) = delete;
  ~pool_core();

  void* get() noexcept;         // null: there is none
  void* put(void* o) noexcept;  // what the caller is to destroy, or null

  // Takes out what is left, for the end of the pool; null: nothing any more. Nobody else uses it.
  void* drain() noexcept;

 private:
  struct cache;
  struct block;
  static constexpr std::size_t caches_per_block = 32, block_count = 32;  // room for as many Ps as the runtime can have
  static constexpr std::size_t shared_capacity = 64;

  cache* find(std::int32_t p) const noexcept;
  void make_cache(std::int32_t p) noexcept;
  std::size_t take_shared(void** to, std::size_t n) noexcept;
  std::size_t put_shared(void* const* end, std::size_t n) noexcept;
  void* put_or_miss(void* o, std::int32_t& missing) noexcept;

  //   [pool.cache] release: a cache and a block of them are whole before they are found
  std::atomic<block*> blocks_[block_count] = {};

  std::atomic<std::uint32_t> guard_{0};  // of what follows (src/sync/guard.h)
  std::uint32_t shared_size_ = 0;
  void* shared_[shared_capacity];
};

}  // namespace detail

template <class T>
class pool {
 public:
  explicit pool(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool() {
    while (void* o = core_.drain()) delete static_cast<T*>(o);
  }

  // One that was put here, or a new one (null if there is no function to make one).
  std::unique_ptr<T> get() {
    if (void* o = core_.get()) return std::unique_ptr<T>(static_cast<T*>(o));
    return make_ ? make_() : nullptr;
  }

  // Keeps it for a later get(), or destroys it if there are plenty. Null is ignored.
  void put(std::unique_ptr<T> o) {
    if (o == nullptr) return;
    delete static_cast<T*>(core_.put(o.release()));
  }

 private:
  std::function<std::unique_ptr<T>()> make_;
  detail::pool_core core_;
};

}  // namespace weft
