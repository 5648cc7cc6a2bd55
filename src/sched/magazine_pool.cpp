#include "sched/magazine_pool.h"

#include "arch/sanitizer.h"
#include "os/memory.h"

namespace weft::sched {
namespace {

constexpr std::size_t arena_bytes = 2 * 1024 * 1024;
constexpr std::size_t line = 64;

struct arena {
  base::mutex lock{base::lock_rank::memory};
  std::byte* fresh WEFT_GUARDED_BY(lock) = nullptr;
  std::byte* end WEFT_GUARDED_BY(lock) = nullptr;
};
constinit arena current;

}  // namespace

std::byte* carve_memory(std::size_t bytes) noexcept {
  bytes = (bytes + line - 1) / line * line;
  base::lock_guard guard(current.lock);
  if (static_cast<std::size_t>(current.end - current.fresh) < bytes) {
    current.fresh = static_cast<std::byte*>(os::map_huge(arena_bytes));
    current.end = current.fresh + arena_bytes;
    arch::register_roots(current.fresh, arena_bytes);
  }
  return std::exchange(current.fresh, current.fresh + bytes);
}

}  // namespace weft::sched
