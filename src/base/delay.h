// Random delays at the atomics of interest, to widen the windows between them. A debug option (WEFT_DELAYS in CMake);
// without it the call is nothing at all.
#pragma once

namespace weft::base {

#ifdef WEFT_DEBUG_DELAYS
void delay() noexcept;
#else
inline void delay() noexcept {}
#endif

}  // namespace weft::base
