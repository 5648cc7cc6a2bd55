#include <weft/detail/errno.h>

namespace weft::detail {

// Out of line, and with something in it that the compiler cannot look into: otherwise it would see that errno's address is all there is.
[[gnu::noinline]] int& this_errno() noexcept {
  asm volatile("" ::: "memory");
  return errno;
}

}  // namespace weft::detail
