// How much time Ms may spend on looking for work that is not there yet: spinning, and watching for a timer that is nearly due. Both
// spare others the tens of microseconds that waking a thread takes, and both cost a core while they last.
//
// There is a credit, in nanoseconds. Time adds an eighth of itself, and work half of the time that it takes: so a busy program is
// served without delay, and one that has little to do, however often, leaves its cores alone. Looking in vain uses it up. It is
// not exact: a look that is begun is finished.
#pragma once

#include <cstdint>

namespace weft::sched {

// Whether there is credit at the time `now`.
bool may_look(std::int64_t now) noexcept;

void looked_in_vain(std::int64_t ns) noexcept;
void worked(std::int64_t ns) noexcept;

}  // namespace weft::sched
