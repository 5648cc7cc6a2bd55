// A goroutine that is stopped in place may hold malloc's lock. Code that cannot be stopped itself (in a section, on g0, sysmon) must
// therefore never call malloc or free: it would wait for a goroutine that only gets a P through such code. Builds with
// WEFT_DEBUG_CHECKS and a sanitizer, whose allocators can be watched, end the program where it does.
#pragma once

namespace weft::sched {

// Once, before the runtime's first thread.
void watch_malloc() noexcept;

// For a thread of the runtime that is no M and must not wait for any goroutine.
void forbid_malloc_on_this_thread() noexcept;

}  // namespace weft::sched
