// What the programs of this folder share: reading a figure, showing it, and saying whether the symptom shows.
#pragma once

#include <weft/weft.h>

#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>

// A number of weft::runtime::read_metrics() by its name.
inline double figure(std::string_view name) {
  for (const auto& m : weft::runtime::read_metrics()) {
    if (m.name == name) return m.is_histogram() ? m.distribution().quantile(0.99) : m.number();
  }
  std::fprintf(stderr, "there is no metric %.*s\n", static_cast<int>(name.size()), name.data());
  return -1;
}

inline double show(std::string_view name) {
  const double value = figure(name);
  std::printf("  %-45.*s %.6g\n", static_cast<int>(name.size()), name.data(), value);
  return value;
}

// A dump of all goroutines as soon as `text` is in it; empty if that takes longer than half a minute.
inline std::string dump_with(std::string_view text) {
  for (int i = 0; i < 3000; ++i) {
    std::ostringstream out;
    weft::runtime::dump_goroutines(out);
    if (out.str().find(text) != std::string::npos) return out.str();
    weft::sleep_for(std::chrono::milliseconds(10));
  }
  return {};
}

// The exit code of the program: 0 if the figure tells.
inline int verdict(bool shows, const char* what) {
  std::printf("%s: %s\n", shows ? "shows" : "DOES NOT SHOW", what);
  return shows ? 0 : 1;
}
