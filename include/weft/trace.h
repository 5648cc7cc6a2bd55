// The execution trace: what every goroutine did, and when, on which P; who spawned it, who woke it, what it waited for. A file for
// Perfetto's viewer (ui.perfetto.dev, which reads it in the browser); `weft trace FILE` sums it up in the terminal.
//
//   weft::trace::start("server.trace");
//   ...                                  // what is slow
//   weft::trace::stop();
//
// Or as a flight recorder, for what is slow once in a while and was not expected to be:
//
//   weft::trace::record();
//   ...
//   if (took > 100ms) weft::trace::save("slow.trace");   // the last seconds up to now
#pragma once

#include <cstddef>
#include <string>

namespace weft::trace {

// Begins a trace, into a new file or over an old one. The runtime need not be running yet. Goroutines that exist already are
// there from the beginning. While a trace is on, each switch costs some 100 ns more; where events come faster than they can be
// written, some are lost, and the trace says so.
//
// Throws std::system_error if the file cannot be made, std::logic_error if a trace is on already.
void start(std::string path);

// Begins to keep the trace in memory, for save(): of what happened, the newest that fits. A switch takes 64 bytes, 96
// if somebody woke the goroutine, so 64 MiB hold the last seconds of a server under load. Some 64 KiB for each P come to it.
//
// Throws std::logic_error if a trace is on already.
void record(std::size_t memory = std::size_t{64} << 20);

// Writes down what has been recorded up to now; the recording goes on. The world stops for a moment, not while the file is written.
// May be called from anywhere and as often as one likes. A goroutine that has ended, and began earlier than what is kept, is shown
// with the place where it was spawned, without its name.
//
// Throws std::system_error if the file cannot be made or written, std::logic_error if nothing is being recorded.
void save(std::string path);

// Ends a trace that goes to a file, and returns when this is complete. Or ends a recording: what has not been saved is gone. Nothing
// happens if no trace is on.
//
// A program may end without it. What happens is in the file some 100 ms later, and all of it when main() returns or exit() is
// called, and after what weft reports of an uncaught exception, a stack overflow, a deadlock, another fatal error or SIGQUIT: the
// program waits for that, but not for a file that takes nothing for seconds, nor longer than half a minute. If it is killed in
// another way, or calls _exit(), the file lacks what was last, and may end in the midst of a packet: `weft trace` does not mind.
//
// Throws std::system_error if the file could not be written (the disk is full, say).
void stop();

}  // namespace weft::trace
