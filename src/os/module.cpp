#include "os/module.h"

#include <cerrno>

#include <link.h>

namespace weft::os {
namespace {

struct search {
  std::uintptr_t pc;
  module_place result;
};

bool holds(const dl_phdr_info& m, std::uintptr_t pc) noexcept {
  for (int i = 0; i < m.dlpi_phnum; ++i) {
    const auto& h = m.dlpi_phdr[i];
    if (h.p_type == PT_LOAD && pc - (m.dlpi_addr + h.p_vaddr) < h.p_memsz) return true;
  }
  return false;
}

int look_at(dl_phdr_info* m, std::size_t, void* argument) noexcept {
  auto* s = static_cast<search*>(argument);
  if (!holds(*m, s->pc)) return 0;
  // The program itself has no name here.
  const bool has_name = m->dlpi_name != nullptr && *m->dlpi_name != '\0';
  s->result = {has_name ? m->dlpi_name : ::program_invocation_name, s->pc - m->dlpi_addr};
  return 1;
}

// The first module is the program.
int has_interpreter(dl_phdr_info* m, std::size_t, void*) noexcept {
  for (int i = 0; i < m->dlpi_phnum; ++i) {
    if (m->dlpi_phdr[i].p_type == PT_INTERP) return 1;
  }
  return -1;
}

}  // namespace

module_place find_module(std::uintptr_t pc) noexcept {
  search s{pc, {}};
  ::dl_iterate_phdr(&look_at, &s);
  return s.result;
}

bool is_statically_linked() noexcept { return ::dl_iterate_phdr(&has_interpreter, nullptr) != 1; }

}  // namespace weft::os
