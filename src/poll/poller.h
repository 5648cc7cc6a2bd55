// Where one M sleeps until a time or until it is interrupted: epoll, because the same sleep will wait for sockets.
#pragma once

#include <cstdint>

namespace weft::poll {

// Once, before the first wait.
void open_poller() noexcept;

// Sleeps this thread until `deadline_ns` (CLOCK_MONOTONIC; INT64_MAX: for ever) or an interrupt. At most one thread at
// a time. May return early.
void wait_until(std::int64_t deadline_ns) noexcept;

// Ends the current wait_until, or the next one if nobody waits. From any thread.
void interrupt() noexcept;

}  // namespace weft::poll
