// A statistic that one thread at a time writes and any thread reads: no locked instruction, no lost reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::base {

class counter {
 public:
  void add(std::uint64_t n) noexcept { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void bump() noexcept {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    asm volatile("incq %0" : "+m"(value_) : : "cc");  // one instruction; the compiler makes three of a load and a store
#else
    add(1);
#endif
  }
  // True once in `n` times, a power of two.
  bool bump_and_sample(std::uint64_t n) noexcept {
    const std::uint64_t value = value_.load(std::memory_order_relaxed) + 1;
    value_.store(value, std::memory_order_relaxed);
    return (value & (n - 1)) == 0;
  }
  std::uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace weft::base
