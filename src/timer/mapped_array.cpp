#include "timer/mapped_array.h"

#include <cerrno>
#include <cstdint>

#include <sys/mman.h>

#include "arch/sanitizer.h"
#include "base/fatal.h"

namespace weft::timers {

void* remap(void* old, std::size_t old_bytes, std::size_t bytes) noexcept {
  if (bytes == old_bytes) return old;
  if (bytes == 0) {
    ::munmap(old, old_bytes);
    return nullptr;
  }
  void* p = old_bytes == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                           : ::mremap(old, old_bytes, bytes, MREMAP_MAYMOVE);
  if (p == MAP_FAILED) base::fatal("cannot map ", std::uint64_t{bytes}, " bytes for timers: error ", errno);
  if (bytes > old_bytes) arch::register_roots(p, bytes);  // this may be the only pointer to a timer
  return p;
}

}  // namespace weft::timers
