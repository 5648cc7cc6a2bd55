// Addresses of the calling stack, for fatal reports: "module+0xoffset", as addr2line wants them.
#pragma once

namespace weft::os {

// To stderr, at most `limit` frames. For a program that is about to end.
void print_backtrace(int limit) noexcept;

}  // namespace weft::os
