// The thread that brings what was logged into the file. It is the program's in nothing but name: it runs no goroutine,
// needs no P, and receives no signal.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

namespace weft::trace {

// Creates the file and the thread; throws std::system_error.
void start_writer(const std::string& path);

// After end_logging(): waits until all is in the file. What went wrong on the way there.
std::error_code finish_writing();

// Who is about to end the program: what was logged up to now goes into the file, and nothing more unless finish_writing()
// is called still. Waits for that, but not for ever. From anywhere, also from a signal handler, or from a forked child, where
// nothing happens. At exit() this is called by itself.
void write_last_part() noexcept;

// The thread's number; 0 if there is none.
std::int32_t writer_tid() noexcept;

}  // namespace weft::trace
