// Threads of the runtime: the Ms, and the factory that makes them. Creating a thread allocates and takes libc's locks,
// which a goroutine that is stopped in place may hold; so only the factory, a thread that may wait, does it.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

// An M that looks for work; it is already counted as spinning.
void request_spinning_machine() noexcept WEFT_REQUIRES(sched.lock);
// Sees to it that there are idle Ms in reserve. Not past max_threads: a reserve is not worth dying for.
void keep_reserve() noexcept WEFT_REQUIRES(sched.lock);
// The P of a blocking call is wanted, and there is no idle M to hand it to: asks for some, the more goroutines wait.
void ask_for_successors(const processor* p) noexcept WEFT_REQUIRES(sched.lock);
// The same, where nothing goes on without one: fatal if max_threads forbids it.
void insist_on_successor() noexcept WEFT_REQUIRES(sched.lock);

// sysmon: for a while nothing has gone on, for want of threads that max_threads forbids, if it is that: a warning, once; or the end.
void complain_of_threads(bool fatally) noexcept;

// sysmon: the factory looks whether the machine's limits, or its clock, have changed.
void request_look_at_limits() noexcept;

// Starts factory and sysmon and the first Ms, once.
void start_threads();

void name_thread(const char* prefix, std::uint32_t number) noexcept;

// An M without a thread yet, in the list of all.
machine* new_machine() noexcept;
// The calling thread becomes this M's.
void adopt_thread(machine* m) noexcept;

// Has the factory look whether there is something to do. From anywhere, signal handlers included.
void wake_factory() noexcept;

// Whether this is the factory, sysmon, or the writer of a trace.
bool is_service_thread(std::int32_t tid) noexcept;

}  // namespace weft::sched
