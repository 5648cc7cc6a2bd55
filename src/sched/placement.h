// Ms on cores.
#pragma once

namespace weft::sched {

// Two Ms that have Ps share a core, though there are others: the kernel notices at its next tick, or some ticks later. Moves one
// of them to a core where no M with a P is. For sysmon.
void spread_machines() noexcept;

}  // namespace weft::sched
