// Memory straight from the kernel: the runtime's own structures never come from malloc, because the goroutine that was
// preempted may be holding malloc's lock.
#pragma once

#include <cstddef>

namespace weft::os {

inline constexpr std::size_t page_size = 4096;

// Zeroed, readable and writable. Ends the program if there is none.
void* map_memory(std::size_t bytes) noexcept;
// The same; null if there is none.
void* try_to_map_memory(std::size_t bytes) noexcept;
void unmap_memory(void* at, std::size_t bytes) noexcept;

// The same, 2 MiB aligned, with a request for huge pages.
void* map_huge(std::size_t bytes) noexcept;

// Address space for stacks: not accounted, no huge pages. Null if there is none.
void* reserve_stacks(std::size_t bytes) noexcept;

// Gives the pages back to the system; they read as zero afterwards.
void release_pages(void* at, std::size_t bytes) noexcept;

enum class guard_mode { guard_install, mprotect };

// How guard pages are made here: MADV_GUARD_INSTALL (Linux 6.13) or mprotect. WEFTDEBUG=guard=mprotect forces the latter.
guard_mode probe_guard_mode() noexcept;

// Turns one page at each of `count` addresses, `stride` bytes apart, into a guard: touching it is a SIGSEGV.
// False if the kernel refuses (with mprotect: too many mappings).
bool install_guards(void* first, std::size_t stride, std::size_t count, guard_mode mode) noexcept;

}  // namespace weft::os
