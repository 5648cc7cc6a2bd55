// errno in code that parks. A goroutine takes its errno along when it goes on on another thread; but C libraries tell compilers
// that errno's address is the same throughout a function, and so optimized code looks for it where the goroutine was before.
// Below this line errno is asked for each time. Define WEFT_KEEP_ERRNO before the first header of weft to leave it alone (an old
// header that says `extern int errno;` itself does not compile otherwise).
#pragma once

#include <cerrno>

namespace weft::detail {

// That of the thread on which the goroutine is now: used at once, and not kept.
int& this_errno() noexcept;

}  // namespace weft::detail

#ifndef WEFT_KEEP_ERRNO
#undef errno
#define errno (::weft::detail::this_errno())
#endif
