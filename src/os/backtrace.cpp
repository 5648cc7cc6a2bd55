#include "os/backtrace.h"

#include <cstdint>

#include <dlfcn.h>
#include <unwind.h>

#include "base/fatal.h"
#include "os/module.h"

namespace weft::os {
namespace {

struct walk {
  int left;
  int number = 0;
};

void describe(base::text& t, void* pc) noexcept {
  t << pc;
  const module_place place = find_module(reinterpret_cast<std::uintptr_t>(pc));
  if (place.file == nullptr) return;
  t << " " << place.file << "+" << reinterpret_cast<const void*>(place.address);
  Dl_info info;
  if (::dladdr(pc, &info) != 0 && info.dli_sname != nullptr) t << " (" << info.dli_sname << ")";
}

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto* w = static_cast<walk*>(argument);
  int before_instruction = 0;
  auto pc = _Unwind_GetIPInfo(context, &before_instruction);
  if (pc == 0 || w->left-- == 0) return _URC_END_OF_STACK;
  // A return address points behind the call; the line wanted is the call's.
  if (before_instruction == 0) --pc;
  base::text t;
  t << "  #" << w->number++ << " ";
  describe(t, reinterpret_cast<void*>(pc));
  t << "\n";
  t.print();
  return _URC_NO_REASON;
}

}  // namespace

void print_backtrace(int limit) noexcept {
  walk w{limit};
  _Unwind_Backtrace(&visit, &w);
}

}  // namespace weft::os
