#include <weft/pool.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/delay.h"
#include "sched/section.h"
#include "sync/guard.h"

namespace weft::detail {

// Its P's alone.
struct alignas(64) pool_core::cache {
  static constexpr std::size_t capacity = 15;
  std::size_t size = 0;
  void* objects[capacity];
};

struct pool_core::block {
  std::atomic<cache*> caches[caches_per_block] = {};
};

namespace {

constexpr std::int32_t none = -1;

}  // namespace

pool_core::~pool_core() {
  static_assert(sched::max_procs_limit <= caches_per_block * block_count);
  for (auto& entry : blocks_) {
    block* b = entry.load(std::memory_order_acquire);
    if (b == nullptr) continue;
    for (auto& c : b->caches) delete c.load(std::memory_order_acquire);
    delete b;
  }
}

pool_core::cache* pool_core::find(std::int32_t p) const noexcept {
  const auto at = static_cast<std::size_t>(p);
  block* b = blocks_[at / caches_per_block].load(std::memory_order_acquire);  // [pool.cache]
  return b == nullptr ? nullptr : b->caches[at % caches_per_block].load(std::memory_order_acquire);
}

// Not in a section: it allocates. Without memory there is no cache, and the shared stack does.
void pool_core::make_cache(std::int32_t p) noexcept {
  const auto at = static_cast<std::size_t>(p);
  auto& entry = blocks_[at / caches_per_block];
  block* b = entry.load(std::memory_order_acquire);
  if (b == nullptr) {
    auto* made = new (std::nothrow) block;
    if (made == nullptr) return;
    // [pool.cache]
    const bool first = entry.compare_exchange_strong(b, made, std::memory_order_acq_rel, std::memory_order_acquire);
    delete (first ? std::exchange(b, made) : made);
  }
  auto* made = new (std::nothrow) cache;
  cache* nothing = nullptr;
  // [pool.cache]
  if (!b->caches[at % caches_per_block].compare_exchange_strong(nothing, made, std::memory_order_acq_rel,
                                                                std::memory_order_acquire)) {
    delete made;
  }
}

// In a section, both.
std::size_t pool_core::take_shared(void** to, std::size_t n) noexcept {
  take_guard(guard_, 1u);
  n = std::min<std::size_t>(n, shared_size_);
  shared_size_ -= static_cast<std::uint32_t>(n);
  std::copy_n(shared_ + shared_size_, n, to);
  release_guard(guard_, 1u, [](std::uint32_t w) { return w; });
  return n;
}

// The last ones before `end`, as many as there is room for.
std::size_t pool_core::put_shared(void* const* end, std::size_t n) noexcept {
  take_guard(guard_, 1u);
  n = std::min(n, shared_capacity - shared_size_);
  std::copy_n(end - n, n, shared_ + shared_size_);
  shared_size_ += static_cast<std::uint32_t>(n);
  release_guard(guard_, 1u, [](std::uint32_t w) { return w; });
  return n;
}

void* pool_core::get() noexcept {
  gmp::machine* m = sched::enter();
  void* o = nullptr;
  cache* c = m == nullptr ? nullptr : find(m->p->id);
  if (c == nullptr) {
    take_shared(&o, 1);
  } else {
    if (c->size == 0) c->size = take_shared(c->objects, cache::capacity / 2 + 1);
    if (c->size != 0) o = c->objects[--c->size];
  }
  if (m != nullptr) sched::leave(m);
  return o;
}

// `missing`: the P that has no cache yet; nothing was put.
void* pool_core::put_or_miss(void* o, std::int32_t& missing) noexcept {
  gmp::machine* m = sched::enter();
  cache* c = m == nullptr ? nullptr : find(m->p->id);
  if (c == nullptr) {
    if (m != nullptr && missing != m->p->id) {
      missing = m->p->id;
    } else {
      missing = none;
      if (put_shared(&o + 1, 1) == 1) o = nullptr;
    }
  } else {
    missing = none;
    if (c->size == cache::capacity) c->size -= put_shared(c->objects + c->size, cache::capacity / 2 + 1);
    if (c->size != cache::capacity) {
      c->objects[c->size++] = o;
      o = nullptr;
    }
  }
  if (m != nullptr) sched::leave(m);
  return o;
}

void* pool_core::put(void* o) noexcept {
  for (std::int32_t missing = none;;) {
    void* left = put_or_miss(o, missing);
    if (missing == none) return left;
    make_cache(missing);
  }
}

void* pool_core::drain() noexcept {
  if (shared_size_ != 0) return shared_[--shared_size_];
  for (std::size_t p = 0; p < block_count * caches_per_block; ++p) {
    if (blocks_[p / caches_per_block].load(std::memory_order_acquire) == nullptr) {
      p += caches_per_block - 1;
      continue;
    }
    cache* c = find(static_cast<std::int32_t>(p));
    if (c != nullptr && c->size != 0) return c->objects[--c->size];
  }
  return nullptr;
}

}  // namespace weft::detail
