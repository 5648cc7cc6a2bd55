// A full barrier: what was stored before it is visible to all before anything after it is loaded. For the few places where
// the store is a plain one and no read-modify-write of a shared word comes between it and the look. (An instruction, not a
// fence of the language: the thread sanitizer refuses those, and needs none here.)
#pragma once

namespace weft::base {

[[gnu::always_inline]] inline void full_barrier() noexcept {
#if defined(__x86_64__)
  asm volatile("lock orl $0, -8(%%rsp)" : : : "memory", "cc");
#elif defined(__aarch64__)
  asm volatile("dmb ish" : : : "memory");
#endif
}

// After a read-modify-write whose store, too, is to be visible before anything after it is loaded: on x86-64 it is.
[[gnu::always_inline]] inline void settle_exchange() noexcept {
#if !defined(__x86_64__)
  full_barrier();
#endif
}

}  // namespace weft::base
