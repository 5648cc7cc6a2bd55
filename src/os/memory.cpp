#include "os/memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fatal.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

namespace weft::os {
namespace {

constexpr int pidfd_self = -10001;  // PIDFD_SELF_THREAD_GROUP: this process, without a descriptor (Linux 6.14)

void* map(std::size_t bytes, int extra_flags) noexcept {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// All guards of a batch in one system call.
bool install_vectored(std::byte* first, std::size_t stride, std::size_t count) noexcept {
  iovec pages[64];
  for (std::size_t done = 0; done < count;) {
    const std::size_t n = std::min(count - done, std::size(pages));
    for (std::size_t i = 0; i < n; ++i) pages[i] = {first + (done + i) * stride, page_size};
    const long rc = ::syscall(SYS_process_madvise, pidfd_self, pages, n, MADV_GUARD_INSTALL, 0);
    if (rc != static_cast<long>(n * page_size)) return false;
    done += n;
  }
  return true;
}

}  // namespace

void* map_memory(std::size_t bytes) noexcept {
  void* p = map(bytes, 0);
  if (p == nullptr) base::fatal("cannot map ", std::uint64_t{bytes}, " bytes for the runtime: error ", errno);
  return p;
}

// Keeps errno: callers are in the midst of a goroutine.
void* try_to_map_memory(std::size_t bytes) noexcept {
  const int saved = errno;
  void* p = map(bytes, 0);
  errno = saved;
  return p;
}

void unmap_memory(void* at, std::size_t bytes) noexcept { ::munmap(at, bytes); }

void* map_huge(std::size_t bytes) noexcept {
  constexpr std::size_t huge = 2 * 1024 * 1024;
  auto* p = static_cast<std::byte*>(map_memory(bytes + huge));
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(p) + huge - 1) & ~(huge - 1));
  if (aligned != p) ::munmap(p, static_cast<std::size_t>(aligned - p));
  const std::size_t tail = huge - static_cast<std::size_t>(aligned - p);
  if (tail != 0) ::munmap(aligned + bytes, tail);
  ::madvise(aligned, bytes, MADV_HUGEPAGE);  // a wish: small pages work too
  return aligned;
}

void* reserve_stacks(std::size_t bytes) noexcept {
  void* p = map(bytes, MAP_NORESERVE | MAP_STACK);
  if (p != nullptr) ::madvise(p, bytes, MADV_NOHUGEPAGE);  // one page resident a stack, not two megabytes
  return p;
}

void release_pages(void* at, std::size_t bytes) noexcept { ::madvise(at, bytes, MADV_DONTNEED); }

guard_mode probe_guard_mode() noexcept {
  void* p = map(page_size, 0);
  if (p == nullptr) return guard_mode::mprotect;
  const bool works = ::madvise(p, page_size, MADV_GUARD_INSTALL) == 0;
  ::munmap(p, page_size);
  return works ? guard_mode::guard_install : guard_mode::mprotect;
}

bool install_guards(void* first, std::size_t stride, std::size_t count, guard_mode mode) noexcept {
  auto* at = static_cast<std::byte*>(first);
  if (mode == guard_mode::guard_install && install_vectored(at, stride, count)) return true;
  for (std::size_t i = 0; i < count; ++i, at += stride) {
    const int rc = mode == guard_mode::guard_install ? ::madvise(at, page_size, MADV_GUARD_INSTALL)
                                                     : ::mprotect(at, page_size, PROT_NONE);
    if (rc != 0) return false;
  }
  return true;
}

}  // namespace weft::os
