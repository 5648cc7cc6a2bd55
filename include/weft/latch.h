// latch: as in std, for goroutines and plain threads alike.
#pragma once

#include <cstddef>
#include <stdexcept>

#include <weft/detail/countdown.h>

namespace weft {

class latch {
 public:
  static constexpr std::ptrdiff_t max() noexcept { return detail::countdown::max; }

  constexpr explicit latch(std::ptrdiff_t expected) : counter_(expected) {
    if (expected < 0 || expected > max()) throw std::logic_error("weft::latch: the count is out of range");
  }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  // To count below zero is a std::logic_error.
  void count_down(std::ptrdiff_t n = 1) {
    if (n < 0 || n > max() || !counter_.down(n)) throw std::logic_error("weft::latch: counted below zero");
  }
  bool try_wait() const noexcept { return counter_.is_zero(); }
  void wait() const noexcept { counter_.wait(detail::wait_reason::latch); }
  void arrive_and_wait(std::ptrdiff_t n = 1) {
    count_down(n);
    wait();
  }

 private:
  mutable detail::countdown counter_;
};

}  // namespace weft
