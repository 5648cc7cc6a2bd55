// An exception that leaves a goroutine's function. The start frame of a goroutine (arch/start_*.S) has this personality
// routine, which the unwinder calls while it looks for a handler, before anything is unwound: the report can show the
// stack of the throw. Nobody below has a handler, and the stack ends here, so the C++ runtime then calls std::terminate.
#include <cxxabi.h>
#include <cstdlib>
#include <exception>
#include <typeinfo>

#include <unwind.h>

#include "base/fatal.h"
#include "gmp/current.h"
#include "gmp/machine.h"
#include "os/backtrace.h"
#include "sched/last_words.h"

namespace weft::sched {
namespace {

// "GNUCC++" and a byte that tells a rethrown exception from a first one: thrown by this C++ runtime.
constexpr _Unwind_Exception_Class cxx_class = 0x474e5543432b2b00;

void describe(base::text& t, _Unwind_Exception* exception) noexcept {
  if ((exception->exception_class & ~_Unwind_Exception_Class{0xff}) != cxx_class) {
    t << "a foreign exception";
    return;
  }
  abi::__cxa_begin_catch(exception);  // std::terminate's handler expects a caught exception anyway
  // No handler was found, so nobody has computed the address that begin_catch returns; an exception_ptr is, in this C++
  // runtime, a pointer to the thrown object.
  const std::exception_ptr pointer = std::current_exception();
  void* object = *reinterpret_cast<void* const*>(&pointer);
  const std::type_info* type = abi::__cxa_current_exception_type();
  int failed = -1;
  char* name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed);
  t << (failed == 0 ? name : type->name());
  std::free(name);
  if (typeid(std::exception).__do_catch(type, &object, 1)) {
    t << ": " << static_cast<const std::exception*>(object)->what();
  }
}

void report(_Unwind_Exception* exception) noexcept {
  base::announce_end();
  base::text t;
  t << "\n";
  if (const gmp::machine* m = gmp::current_machine(); m != nullptr && m->curg != nullptr) name_dying(t, *m->curg);
  t << ": uncaught exception ";
  describe(t, exception);
  t << "\n";
  t.print();
  os::print_backtrace(64);
  base::do_before_abort();
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) _Unwind_Reason_Code weft_goroutine_personality(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception* exception, _Unwind_Context*) {
  if ((actions & _UA_SEARCH_PHASE) != 0) report(exception);
  return _URC_CONTINUE_UNWIND;
}

}  // namespace weft::sched
