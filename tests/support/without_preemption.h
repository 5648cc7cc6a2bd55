// For programs whose tests count who runs, or tell from who runs what the others do: on a slow machine a slice may end anywhere,
// and a goroutine that is stopped in place neither runs nor waits. Include it in the program's one file.
#pragma once

#include <cstdlib>

namespace test {

inline const bool without_preemption = ::setenv("WEFTDEBUG", "asyncpreemptoff=1", 0) == 0;

}  // namespace test
