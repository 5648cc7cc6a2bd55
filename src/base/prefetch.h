// A hint that a cache line will be needed soon. As an instruction of our own: GCC takes a function that does nothing but
// __builtin_prefetch for one without effect, and drops the call.
#pragma once

namespace weft::base {

[[gnu::always_inline]] inline void prefetch(const void* p) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(p)));
#elif defined(__aarch64__)
  asm volatile("prfm pldl1keep, [%0]" : : "r"(p));
#endif
}

// The same, and that it will be written: takes it from other cores.
[[gnu::always_inline]] inline void prefetch_to_write(const void* p) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p)));
#elif defined(__aarch64__)
  asm volatile("prfm pstl1keep, [%0]" : : "r"(p));
#endif
}

}  // namespace weft::base
