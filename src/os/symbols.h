// Names for program counters: function, file and line, with the calls that were inlined. By elfutils' libdw, if it is on
// this machine; it is opened at run time, so that weft itself needs nothing but libc and libstdc++. Without it, and in a
// program that is linked statically, there are the names of the dynamic symbol table, and always module and address, as
// `addr2line -e module address` wants them.
//
// Allocates, reads files, takes locks of the loader: never on a scheduler's stack or with the world stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace weft::os {

struct symbol {
  std::string function;  // demangled; empty: not known
  std::string file;      // empty: not known
  int line = 0;
  std::uintptr_t in_function = 0;  // offset from the function's beginning; 0 for one that was inlined
};

struct location {
  std::vector<symbol> symbols;  // innermost inlined call first, the function itself last; at least one
  std::string module;
  std::uintptr_t in_module = 0;
};

class symbolizer {
 public:
  symbolizer();
  ~symbolizer();
  symbolizer(const symbolizer&) = delete;
  symbolizer& operator=(const symbolizer&) = delete;

  // Remembered: the reference stays valid.
  const location& at(std::uintptr_t pc);

 private:
  class debug_information;

  location look_up(std::uintptr_t pc);

  std::unique_ptr<debug_information> debug_;  // null: no libdw
  std::unordered_map<std::uintptr_t, location> known_;
};

}  // namespace weft::os
