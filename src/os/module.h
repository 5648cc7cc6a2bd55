// The file that a program counter's code comes from, and where in it: what `addr2line -e file address` wants.
#pragma once

#include <cstdint>

namespace weft::os {

struct module_place {
  const char* file = nullptr;  // null: not known
  // As the file itself counts: from 0 if it can be loaded anywhere, and the address that is run for a program that cannot.
  std::uintptr_t address = 0;
};

// Takes the loader's lock, as unwinding does.
module_place find_module(std::uintptr_t pc) noexcept;

// A program without a dynamic loader. What it opens at run time would bring a second libc along, which nobody has set up.
bool is_statically_linked() noexcept;

}  // namespace weft::os
