// How exit_goroutine() travels.
#pragma once

namespace weft::sched {

// Not derived from anything, so only catch (...) sees it.
struct goroutine_exit {};

}  // namespace weft::sched
