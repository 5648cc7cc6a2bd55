// sysmon: a thread without a P that watches the others.
#pragma once

#include "sched/scheduler.h"

namespace weft::sched {

[[noreturn]] void sysmon_loop() noexcept;

// A P is about to be used again.
void wake_sysmon() noexcept WEFT_REQUIRES(sched.lock);

// There is something to do for it, though nothing runs.
void wake_sysmon_if_asleep() noexcept;

}  // namespace weft::sched
