// What ASan and TSan must be told about stacks that are not a thread's own. Each is empty in a plain build.
#pragma once

#include <cstddef>

#include "arch/sanitized.h"

#ifdef WEFT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef WEFT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// For a function that is left by a switch and never returns: TSan would wait for its end for ever, and each goroutine that
// ends on a stack would leave one more such function behind.
#ifdef WEFT_TSAN
#define WEFT_NEVER_RETURNS __attribute__((no_sanitize("thread")))
#else
#define WEFT_NEVER_RETURNS
#endif

namespace weft::arch {

#if defined(WEFT_ASAN) || defined(WEFT_TSAN)
inline constexpr bool under_sanitizer = true;
#else
inline constexpr bool under_sanitizer = false;
#endif

// One per stack that computations are switched on and off: a goroutine's, and each thread's own.
struct fiber {
#ifdef WEFT_ASAN
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t size = 0;
#endif
#ifdef WEFT_TSAN
  void* tsan = nullptr;
#endif
};

// `from` is about to be switched off and `to` on. `dying`: nobody will continue `from`.
[[gnu::always_inline]] inline void before_switch([[maybe_unused]] fiber& from, [[maybe_unused]] fiber& to,
                                                 [[maybe_unused]] bool dying) noexcept {
#ifdef WEFT_ASAN
  __sanitizer_start_switch_fiber(dying ? nullptr : &from.fake_stack, to.bottom, to.size);
#endif
#ifdef WEFT_TSAN
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
}

// The first thing that `self` does when it is switched on (again).
[[gnu::always_inline]] inline void after_switch([[maybe_unused]] fiber& self) noexcept {
#ifdef WEFT_ASAN
  void* fake_stack = self.fake_stack;
  self.fake_stack = nullptr;  // if the goroutine ends now, the next one on this stack must not find it
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

// A goroutine's stack gets its fiber, once, before its first use.
inline void create_fiber([[maybe_unused]] fiber& f, [[maybe_unused]] void* low, [[maybe_unused]] std::size_t size) noexcept {
#ifdef WEFT_ASAN
  f.bottom = low;
  f.size = size;
#endif
#ifdef WEFT_TSAN
  f.tsan = __tsan_create_fiber(0);
#endif
}

inline void destroy_fiber([[maybe_unused]] fiber& f) noexcept {
#ifdef WEFT_TSAN
  if (f.tsan != nullptr) __tsan_destroy_fiber(f.tsan);
  f.tsan = nullptr;
#endif
}

// This thread's own stack.
inline void adopt_thread_fiber([[maybe_unused]] fiber& f, [[maybe_unused]] void* low, [[maybe_unused]] std::size_t size) noexcept {
#ifdef WEFT_ASAN
  f.bottom = low;
  f.size = size;
#endif
#ifdef WEFT_TSAN
  f.tsan = __tsan_get_current_fiber();
#endif
}

// The frames of the goroutine that ended on this stack never returned: clear what they marked.
inline void scrub_stack([[maybe_unused]] void* low, [[maybe_unused]] std::size_t size) noexcept {
#ifdef WEFT_ASAN
  __asan_unpoison_memory_region(low, size);
#endif
}

// Memory that the runtime mapped and that may hold the only pointer to a user's object.
inline void register_roots([[maybe_unused]] void* low, [[maybe_unused]] std::size_t size) noexcept {
#ifdef WEFT_ASAN
  __lsan_register_root_region(low, size);
#endif
}

}  // namespace weft::arch
