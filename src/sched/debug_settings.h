// WEFTDEBUG=name=value,...: read once, when the runtime starts.
#pragma once

namespace weft::sched {

// Unknown or malformed settings get one warning each and are ignored.
void read_debug_settings() noexcept;

}  // namespace weft::sched
