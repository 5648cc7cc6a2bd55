// A small fast generator for scheduling decisions (steal order, select order). Not for anything that must be hard to guess.
#pragma once

#include <cstdint>

namespace weft::base {

class random {
 public:
  explicit constexpr random(std::uint64_t seed) noexcept : state_(seed * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u) {}

  std::uint32_t next() noexcept {
    // splitmix64: every seed, 0 included, is a good one.
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<std::uint32_t>(z >> 32);
  }

  // Uniform in [0, bound).
  std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace weft::base
