// Walking a stack that is not the caller's own: from the three words that a suspended computation leaves behind (stack
// pointer, program counter, frame pointer) up to its end, by the unwind tables (.eh_frame) that every compiler emits. Two
// of them will do if nothing better is to be had: then a frame that only the frame pointer could find is searched for.
//
// The C++ runtime's unwinder can only start where it is called, and takes locks of the loader. This one reads memory and
// nothing else, and reads the stack only between given bounds: it can be used with the world stopped, on any stack, and
// survives a stack that changes under it (with a wrong answer). The tables are found beforehand, by code_map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "os/machine_state.h"

namespace weft::os {

// The code that is loaded now, and where its unwind tables are. Takes the loader's lock and allocates.
class code_map {
 public:
  struct module {
    std::uintptr_t begin, end;      // its executable part
    std::uintptr_t bias;            // addresses in the file are lower by this
    const std::uint8_t* index;      // .eh_frame_hdr
    std::uintptr_t data_begin, data_end;  // its writable part; there may be none
  };

  static code_map read();

  const module* find(std::uintptr_t pc) const noexcept;

 private:
  std::vector<module> modules_;
};

struct stack_bounds {
  std::uintptr_t low, high;
};

// Writes the program counters of the frames, innermost first, and returns how many: at most `max`. Each but the first is
// that of a call, not of what comes after it.
std::size_t unwind(const code_map& code, machine_state from, stack_bounds bounds, std::uintptr_t* pcs,
                   std::size_t max) noexcept;

}  // namespace weft::os
