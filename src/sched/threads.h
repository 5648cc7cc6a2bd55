// Threads of the runtime: the Ms, and the factory that makes them. Creating a thread allocates and takes libc's locks,
// which a goroutine that is stopped in place may hold; so only the factory, a thread that may wait, does it.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// An M that looks for work; it is already counted as spinning.
void request_spinning_machine() noexcept WEFT_REQUIRES(sched.lock);
// An M for the idle list, so that there is always one in reserve.
void request_spare_machine() noexcept WEFT_REQUIRES(sched.lock);

// Starts factory and sysmon and the first Ms, once.
void start_threads();

void name_thread(const char* prefix, std::uint32_t number) noexcept;

// Has the factory look whether there is something to do. From anywhere, signal handlers included.
void wake_factory() noexcept;

// Whether this is the factory, or sysmon.
bool is_service_thread(std::int32_t tid) noexcept;

}  // namespace weft::sched
