// Free spawn records of a P: a stack of pointers, not a chain through the records. Where others run what this P spawns, each
// record comes back in another core's cache, and only who knows the addresses beforehand can ask for several at a time.
#pragma once

#include <weft/detail/record.h>

#include <cstdint>

namespace weft::gmp {

struct record_magazine {
  static constexpr std::uint32_t capacity = 256;

  record_magazine* next = nullptr;  // in the shared pool
  std::uint32_t count = 0;
  detail::record* records[capacity];
};

}  // namespace weft::gmp
