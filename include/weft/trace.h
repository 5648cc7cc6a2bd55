// The execution trace: what every goroutine did, and when, on which P; who spawned it, who woke it, what it waited for. A file for
// Perfetto's viewer (ui.perfetto.dev, which reads it in the browser); `weft trace FILE` sums it up in the terminal.
//
//   weft::trace::start("server.trace");
//   ...                                  // what is slow
//   weft::trace::stop();
#pragma once

#include <string>

namespace weft::trace {

// Begins a trace, into a new file or over an old one. The runtime need not be running yet. Goroutines that exist already are
// there from the beginning. While a trace is on, each switch costs some 100 ns more; where events come faster than they can be
// written, some are lost, and the trace says so.
//
// Throws std::system_error if the file cannot be made, std::logic_error if a trace is on already.
void start(std::string path);

// Ends it: returns when the file is complete. Nothing happens if no trace is on. A program that ends without it leaves a file that
// lacks its last part.
//
// Throws std::system_error if the file could not be written (the disk is full, say).
void stop();

}  // namespace weft::trace
