// A recording has no beginning: what was written down first is gone. replay() makes a whole trace of it, as if one had
// begun at the moment from which on everything is known.
//
// What was before that moment is inferred: who is woken has waited, who stops has run, and the census tells of those who
// did nothing at all.
#pragma once

#include <functional>

#include "trace/log.h"

namespace weft::trace {

// Calls use(chunk) with the beginning first, and then with what happened.
void replay(const recording& r, const std::function<void(const chunk&)>& use);

}  // namespace weft::trace
