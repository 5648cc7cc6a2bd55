// A census as text, in the form of Go's dumps.
#pragma once

#include <string>

#include "sched/census.h"

namespace weft::sched {

// Equal stacks are shown once, with the numbers of all goroutines that have them.
std::string report(const census& c, bool only_waiting = false);

// Takes a census and writes its report to stderr. From a plain thread.
void report_to_stderr();
void print_to_stderr(const std::string& text);

}  // namespace weft::sched
