// `weft trace FILE`: what a trace says, in the terminal.
#pragma once

#include <string>

namespace tool {

// Prints it; the exit code.
int summarize_trace(const std::string& path);

}  // namespace tool
