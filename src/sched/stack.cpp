#include "sched/stack.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "os/memory.h"

namespace weft::sched {
namespace {

// More than asked for: a page for the goroutine and the first frames, and room in which it can lend a whole stack of the
// default size to those that it waits for (sched/join.h).
constexpr std::size_t room_to_lend = 32 * 1024;
constexpr std::size_t header_bytes = os::page_size + room_to_lend;
constexpr std::size_t colours = 16;
constexpr std::uint32_t carve_batch = 64;

struct arena {
  std::byte* base;
  std::size_t stride;
  std::uint32_t capacity;
  std::atomic<std::uint32_t> carved;
};

// Append-only, so that the fault handler and dumps read it without a lock.
constexpr std::uint32_t max_arenas = 1 << 16;
struct arena_table {
  std::atomic<std::uint32_t> count{0};
  arena* entries = nullptr;
};
constinit arena_table arenas;

// Free stacks of one size, by low address; the goroutine on top is found by arithmetic, so the pages can be gone.
struct stack_pool {
  gmp::pointer_queue warm;   // used since the last scavenge
  gmp::pointer_queue cool;   // not used since then: the next scavenge returns them
  gmp::pointer_queue cold;   // pages returned
  arena* current = nullptr;
};

struct pools {
  base::mutex lock{base::lock_rank::stacks};
  stack_pool of[stack_classes] WEFT_GUARDED_BY(lock);
  os::guard_mode guards = os::guard_mode::guard_install;
  bool probed = false;
  std::atomic<std::uint64_t> total{0}, pooled{0}, returned{0};
};
constinit pools shared;
constinit std::atomic<int> default_class{4};

constexpr std::size_t class_bytes(int c) noexcept { return min_stack << c; }
constexpr std::size_t class_stride(int c) noexcept { return os::page_size + class_bytes(c) + header_bytes; }

// `low` is the guard page's address.
goroutine* goroutine_on(std::byte* low, int c) noexcept {
  const auto colour = (reinterpret_cast<std::uintptr_t>(low) / class_stride(c)) % colours;
  std::byte* top = low + class_stride(c) - colour * 64;
  constexpr std::size_t size = (sizeof(goroutine) + 63) & ~std::size_t{63};
  return reinterpret_cast<goroutine*>(top - size);
}

std::byte* low_of(const goroutine* g) noexcept { return g->stack_low - os::page_size; }

goroutine* format(std::byte* low, int c) noexcept {
  auto* g = new (goroutine_on(low, c)) goroutine;
  g->stack_low = low + os::page_size;
  g->stack_size = class_bytes(c);
  arch::create_fiber(g->fiber, g->stack_low, static_cast<std::size_t>(reinterpret_cast<std::byte*>(g) - g->stack_low));
  return g;
}

void probe_guards_once() noexcept WEFT_REQUIRES(shared.lock) {
  if (shared.probed) return;
  shared.guards = os::probe_guard_mode();
  shared.probed = true;
}

arena* new_arena(int c, const arena* previous) noexcept WEFT_REQUIRES(shared.lock) {
  if (arenas.entries == nullptr) arenas.entries = static_cast<arena*>(os::map_memory(max_arenas * sizeof(arena)));
  const std::uint32_t n = arenas.count.load(std::memory_order_relaxed);
  if (n == max_arenas) base::fatal("too many stack arenas");
  // Small at first, then in large pieces; never more than 4 GiB of address space at a time.
  std::uint32_t stacks = previous == nullptr ? carve_batch : std::min(previous->capacity * 2, std::uint32_t{4096});
  const std::uint64_t most = (std::uint64_t{4} << 30) / class_stride(c);
  stacks = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, std::min<std::uint64_t>(stacks, most)));
  void* memory = os::reserve_stacks(stacks * class_stride(c));
  if (memory == nullptr) {
    base::fatal("cannot reserve address space for more stacks (", shared.total.load(std::memory_order_relaxed), " exist, ",
                std::uint64_t{class_bytes(c)}, " bytes each): error ", errno);
  }
  arena* a = new (&arenas.entries[n]) arena{static_cast<std::byte*>(memory), class_stride(c), stacks, {0}};
  arenas.count.store(n + 1, std::memory_order_release);  // [arena.publish]
  return a;
}

// Fresh stacks that one taker has claimed.
struct batch {
  std::byte* first = nullptr;
  std::size_t stride = 0;
  std::uint32_t count = 0;

  std::byte* at(std::uint32_t i) const noexcept { return first + i * stride; }
};

// From here on others look at them, and see zeros: dead.
batch claim_fresh(int c) noexcept WEFT_REQUIRES(shared.lock) {
  probe_guards_once();
  stack_pool& pool = shared.of[c];
  if (pool.current == nullptr || pool.current->carved.load(std::memory_order_relaxed) == pool.current->capacity) {
    pool.current = new_arena(c, pool.current);
  }
  arena& a = *pool.current;
  const std::uint32_t done = a.carved.load(std::memory_order_relaxed);
  const std::uint32_t n = std::min(carve_batch, a.capacity - done);
  a.carved.store(done + n, std::memory_order_release);  // [arena.publish]
  shared.total.fetch_add(n, std::memory_order_relaxed);
  return {a.base + done * a.stride, a.stride, n};
}

// By one system call.
void guard(const batch& b, os::guard_mode mode) noexcept {
  if (!os::install_guards(b.first, b.stride, b.count, mode)) {
    base::fatal("cannot guard more stacks: error ", errno, " after ", shared.total.load(std::memory_order_relaxed),
                " stacks. This kernel has no MADV_GUARD_INSTALL (Linux 6.13), so each stack takes two memory mappings: raise "
                "vm.max_map_count");
  }
  for (std::uint32_t i = 0; i < b.count; ++i) arch::register_roots(b.at(i) + os::page_size, b.stride - os::page_size);
}

// Below the goroutine, in its page.
__attribute__((no_sanitize_address, no_sanitize_thread, noinline)) void touch(std::byte* low, int c) noexcept {
  auto* at = reinterpret_cast<volatile char*>(goroutine_on(low, c)) - 1;
  *at = 0;
}

// Takes up to n stacks, at least one, and returns how many. To guard a stack, and to touch a page for the first time, takes
// the kernel microseconds, and others want the lock: so that is done without it. But who looks at all goroutines must not
// see one half made: so the objects are made with it.
std::uint32_t take_some(int c, goroutine** out, std::uint32_t n) noexcept {
  std::byte* cold[processor::stack_cache_size];
  std::uint32_t taken = 0, without_page = 0;
  batch fresh;
  os::guard_mode mode;
  {
    base::lock_guard lock(shared.lock);
    stack_pool& pool = shared.of[c];
    while (taken + without_page < n) {
      void* low = pool.warm.pop();
      if (low == nullptr) low = pool.cool.pop();
      if (low != nullptr) {
        out[taken++] = goroutine_on(static_cast<std::byte*>(low), c);
      } else if ((low = pool.cold.pop()) != nullptr) {
        cold[without_page++] = static_cast<std::byte*>(low);
      } else {
        break;
      }
    }
    shared.pooled.fetch_sub(taken + without_page, std::memory_order_relaxed);
    if (taken + without_page < n) fresh = claim_fresh(c);
    mode = shared.guards;
  }
  if (fresh.count != 0) guard(fresh, mode);
  std::uint32_t used = 0;
  while (taken + without_page < n && used < fresh.count) cold[without_page++] = fresh.at(used++);
  if (without_page == 0) return taken;

  for (std::uint32_t i = 0; i < without_page; ++i) touch(cold[i], c);
  base::lock_guard lock(shared.lock);
  for (std::uint32_t i = 0; i < without_page; ++i) out[taken++] = format(cold[i], c);
  shared.pooled.fetch_add(fresh.count - used, std::memory_order_relaxed);
  while (used < fresh.count) shared.of[c].cold.push(fresh.at(used++));
  return taken;
}

void put_shared(goroutine* g) noexcept WEFT_REQUIRES(shared.lock) {
  shared.of[stack_class(g->stack_size)].warm.push(low_of(g));
  shared.pooled.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

int stack_class(std::size_t bytes) noexcept {
  const std::size_t rounded = std::bit_ceil(std::clamp(bytes, min_stack, max_stack));
  return std::countr_zero(rounded / min_stack);
}

goroutine* take_stack(processor* p) noexcept {
  if (p->stack_count == 0) {
    p->stack_count = take_some(default_class.load(std::memory_order_relaxed), p->stacks, processor::stack_cache_size / 2);
  }
  return p->stacks[--p->stack_count];
}

goroutine* take_stack_of(std::size_t bytes) noexcept {
  goroutine* g = nullptr;
  take_some(stack_class(bytes), &g, 1);
  return g;
}

void put_stack(processor* p, goroutine* g) noexcept {
  if (stack_class(g->stack_size) != default_class.load(std::memory_order_relaxed)) {
    base::lock_guard guard(shared.lock);
    put_shared(g);
    return;
  }
  if (p->stack_count == processor::stack_cache_size) {
    base::lock_guard guard(shared.lock);
    while (p->stack_count > processor::stack_cache_size / 2) put_shared(p->stacks[--p->stack_count]);
  }
  p->stacks[p->stack_count++] = g;
}

void flush_stacks(processor* p) noexcept {
  base::lock_guard guard(shared.lock);
  while (p->stack_count > 0) put_shared(p->stacks[--p->stack_count]);
}

void set_default_stack_size(std::size_t bytes) noexcept { default_class.store(stack_class(bytes), std::memory_order_relaxed); }

std::size_t default_stack_size() noexcept { return class_bytes(default_class.load(std::memory_order_relaxed)); }

bool has_default_stack(const goroutine* g) noexcept { return g->stack_size == default_stack_size(); }

void force_mprotect_guards() noexcept {
  base::lock_guard guard(shared.lock);
  if (shared.probed) return;
  shared.guards = os::guard_mode::mprotect;
  shared.probed = true;
}

std::size_t scavenge_stacks() noexcept {
  std::size_t done = 0;
  for (int c = 0; c < stack_classes; ++c) {
    // A few under the lock at a time: takers must not wait for a thousand system calls.
    for (bool more = true; more;) {
      base::lock_guard guard(shared.lock);
      stack_pool& pool = shared.of[c];
      for (int i = 0; i < 16 && (more = !pool.cool.empty()); ++i, ++done) {
        auto* low = static_cast<std::byte*>(pool.cool.pop());
        arch::destroy_fiber(goroutine_on(low, c)->fiber);
        os::release_pages(low + os::page_size, class_stride(c) - os::page_size);
        pool.cold.push(low);
      }
    }
    base::lock_guard guard(shared.lock);
    std::swap(shared.of[c].warm, shared.of[c].cool);
  }
  shared.returned.fetch_add(done, std::memory_order_relaxed);
  return done;
}

goroutine* guard_hit(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::uint32_t n = arenas.count.load(std::memory_order_acquire);  // [arena.publish]
  for (std::uint32_t i = 0; i < n; ++i) {
    const arena& a = arenas.entries[i];
    const auto base = reinterpret_cast<std::uintptr_t>(a.base);
    if (at < base || at >= base + a.stride * a.carved.load(std::memory_order_acquire)) continue;
    const std::size_t index = (at - base) / a.stride;
    if ((at - base) % a.stride >= os::page_size) return nullptr;
    return goroutine_on(a.base + index * a.stride, stack_class(a.stride - os::page_size - header_bytes));
  }
  return nullptr;
}

void for_each_goroutine(void (*visit)(const goroutine&, void*), void* argument) noexcept {
  const std::uint32_t n = arenas.count.load(std::memory_order_acquire);  // [arena.publish]
  for (std::uint32_t i = 0; i < n; ++i) {
    // Under the lock no stack is formatted and no page is given back. One without pages reads as zeros: dead.
    base::lock_guard guard(shared.lock);
    const arena& a = arenas.entries[i];
    const int c = stack_class(a.stride - os::page_size - header_bytes);
    const std::uint32_t carved = a.carved.load(std::memory_order_relaxed);
    for (std::uint32_t k = 0; k < carved; ++k) visit(*goroutine_on(a.base + k * a.stride, c), argument);
  }
}

stack_stats read_stack_stats() noexcept {
  return {shared.total.load(std::memory_order_relaxed), shared.pooled.load(std::memory_order_relaxed),
          shared.returned.load(std::memory_order_relaxed)};
}

}  // namespace weft::sched
