#include "timer/mapped_array.h"

#include <cerrno>
#include <cstdint>

#include <sys/mman.h>

#include "arch/sanitizer.h"
#include "base/fatal.h"

namespace weft::timers {
namespace {

// The array may hold the only pointer to a timer, and LeakSanitizer looks only where it is told to.
void move_roots([[maybe_unused]] void* old, [[maybe_unused]] std::size_t old_bytes, void* p,
                std::size_t bytes) noexcept {
#ifdef WEFT_ASAN
  if (old_bytes != 0) __lsan_unregister_root_region(old, old_bytes);
#endif
  if (bytes != 0) arch::register_roots(p, bytes);
}

}  // namespace

void* remap(void* old, std::size_t old_bytes, std::size_t bytes) noexcept {
  if (bytes == old_bytes) return old;
  if (bytes == 0) {
    move_roots(old, old_bytes, nullptr, 0);
    ::munmap(old, old_bytes);
    return nullptr;
  }
  void* p = old_bytes == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                           : ::mremap(old, old_bytes, bytes, MREMAP_MAYMOVE);
  if (p == MAP_FAILED) base::fatal("cannot map ", std::uint64_t{bytes}, " bytes for timers: error ", errno);
  move_roots(old, old_bytes, p, bytes);
  return p;
}

}  // namespace weft::timers
