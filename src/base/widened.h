// A count of 32 bits made wider for those who read it. Its writer bumps the narrow one at each event, and tells the wide one now
// and then, at the least once in two thousand million.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::base {

class widened {
 public:
  // By the writer. Says how many there were since the last time.
  std::uint32_t note(std::uint32_t narrow) noexcept {
    const std::uint64_t seen = seen_.load(std::memory_order_relaxed);
    const std::uint32_t since = narrow - static_cast<std::uint32_t>(seen);
    seen_.store(seen + since, std::memory_order_release);  // after what it has counted
    return since;
  }

  // By anyone. `narrow` is called once this has been read, and never gives less than what was noted last: so it does not go back.
  template <class Narrow>
  std::uint64_t read(Narrow narrow) const noexcept {
    const std::uint64_t seen = seen_.load(std::memory_order_acquire);
    return seen + (narrow() - static_cast<std::uint32_t>(seen));
  }

 private:
  std::atomic<std::uint64_t> seen_{0};
};

}  // namespace weft::base
