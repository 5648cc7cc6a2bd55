// Free blocks of one kind that a P keeps (spawn records, timers): a stack of pointers, not a chain through the blocks. Where others
// use what this P has made, each block comes back in another core's cache, and only who knows the addresses beforehand can
// ask for several at a time.
#pragma once

#include <cstdint>

namespace weft::gmp {

template <class T>
struct magazine {
  static constexpr std::uint32_t capacity = 256;

  magazine* next = nullptr;  // in the shared pool
  std::uint32_t count = 0;
  T* items[capacity];
};

// What a P has of a kind. Two, so that one that takes and gives by turns does not go to the shared pool each time.
template <class T>
struct magazines {
  magazine<T>* current = nullptr;
  magazine<T>* other = nullptr;
};

}  // namespace weft::gmp
