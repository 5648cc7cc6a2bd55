// The poller's contract. Descriptors are watched for both directions from their first wait to their end, edge by edge;
// the poller hands out those whose waiters can go on, and wakes nobody itself. It is also where one M sleeps until a
// time. poller.cpp is the implementation on epoll; one on io_uring would have the same functions.
#pragma once

#include <cstdint>

#include "poll/descriptor.h"

namespace weft::poll {

// Once, before anything else. 0, or an error number: there is no poller yet.
int open_poller() noexcept;

// From now on events of `fd` notify the slots of `d`; if it is ready already, that is the first event. Returns an error
// number, 0 if there is none. EEXIST: this descriptor number is watched already.
int watch(int fd, descriptor& d) noexcept;

// No more events, but for those that a poll() has in its hands already. Not needed for an fd that is closed instead, if
// no duplicate of it exists.
void unwatch(int fd) noexcept;

struct events {
  ready_list ready;          // whom to wake
  std::uint32_t seen = 0;    // how many events there were
};

// What has happened since the last call. Does not wait.
void poll(events& found) noexcept;

// The same, but sleeps this thread until something has happened, until `deadline_ns` (CLOCK_MONOTONIC; no_deadline: for
// ever) or until an interrupt. At most one thread at a time. May return early with nothing.
void wait_until(std::int64_t deadline_ns, events& found) noexcept;

// Whether poll() would find something; no, if that cannot be told from an interrupt. Takes nothing.
bool any_event() noexcept;

// How late wait_until usually comes back from its sleep.
std::int64_t usual_delay() noexcept;

// Ends the current wait_until, or the next one if nobody waits. From any thread.
void interrupt() noexcept;

}  // namespace weft::poll
