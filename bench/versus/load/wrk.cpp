#include "wrk.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

// What it says, or nothing if it fails.
std::string output_of(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  return ::pclose(pipe) == 0 ? text : std::string();
}

// "  139012 requests in 3.00s, 17.23MB read"
long requests_in(const std::string& text) {
  const std::size_t at = text.find(" requests in ");
  if (at == std::string::npos) return 0;
  const std::size_t line = text.rfind('\n', at) + 1;
  return std::strtol(text.c_str() + line, nullptr, 10);
}

bool all_right(const std::string& text) {
  return text.find("Socket errors:") == std::string::npos && text.find("Non-2xx") == std::string::npos;
}

}  // namespace

int run_wrk(int port, int connections, int seconds) {
  if (::write(1, "c", 1) != 1) return 1;
  const std::string text = output_of("wrk -t1 -c" + std::to_string(connections) + " -d" + std::to_string(seconds) +
                                     "s http://127.0.0.1:" + std::to_string(port) + "/");
  const long requests = requests_in(text);
  if (requests == 0 || !all_right(text)) {
    std::fprintf(stderr, "net-load: wrk is not there, or says:\n%s", text.c_str());
    return 1;
  }
  std::printf("%ld", requests);
  return 0;
}
