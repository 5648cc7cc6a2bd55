// A system call without libc: the result, or a negative error number. Libc's own recv() and its like are cancellation points, which
// costs two locked instructions a call in a program with threads, and leave their error in errno, which no code that
// parks should look at. (Beside a sanitizer it is libc's: there the sanitizer wants to see which bytes are written, and who hands what
// to whom through a socket.)
#pragma once

#include <cerrno>

#include <unistd.h>

#include "arch/sanitizer.h"

namespace weft::arch {

#if defined(__x86_64__)
[[gnu::always_inline]] inline long bare_system_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
[[gnu::always_inline]] inline long bare_system_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
  return x0;
}
#endif

inline long as_argument(const void* p) noexcept { return reinterpret_cast<long>(p); }

// `in_libc()` is the same call by libc.
template <class InLibc>
[[gnu::always_inline]] inline long system_call(InLibc in_libc, long number, long a, long b, long c, long d, long e = 0,
                                               long f = 0) noexcept {
  if constexpr (under_sanitizer) {
    const long n = in_libc();
    return n >= 0 ? n : -errno;
  } else {
    return bare_system_call(number, a, b, c, d, e, f);
  }
}

}  // namespace weft::arch
