// How the programs here answer to their arguments, and how they end when the system refuses something.
#pragma once

#include <weft/weft.h>

#include <cstdio>
#include <string_view>
#include <system_error>

namespace example {

// `--help`: prints the usage, and main() may return 0.
inline bool asked_for_help(int argc, char** argv, const char* usage) {
  if (argc != 2 || (std::string_view(argv[1]) != "--help" && std::string_view(argv[1]) != "-h")) return false;
  std::fputs(usage, stdout);
  return true;
}

// The exit code of a program that did not understand its arguments.
inline int misunderstood(const char* usage) {
  std::fputs(usage, stderr);
  return 2;
}

// weft::run(), with a sentence and exit code 1 for what the system says no to: an occupied port, an address that is none.
template <class F>
int run(const char* program, F main) {
  try {
    return weft::run(main);
  } catch (const std::system_error& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 1;
  }
}

// At once, also where the output is not a terminal: whoever started the program waits for it.
inline void say_where(const weft::net::listener& listener) {
  std::printf("listening on %s\n", listener.local_address().to_string().c_str());
  std::fflush(stdout);
}

}  // namespace example
