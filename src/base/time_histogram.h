// How often which durations occurred. Any thread adds, any thread reads; counts of one reading may belong to slightly
// different moments. For events that are rare or sampled: an addition is a locked instruction.
//
// Buckets: below 64 ns; then each power of two in four equal parts, up to 2^37 ns (137 s); then the rest.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::base {

class time_histogram {
 public:
  static constexpr int lowest_power = 6, highest_power = 37, parts = 4;
  static constexpr std::size_t buckets = 2 + (highest_power - lowest_power) * parts;

  static constexpr std::size_t bucket_of(std::int64_t ns) noexcept {
    if (ns < (std::int64_t{1} << lowest_power)) return 0;
    if (ns >= (std::int64_t{1} << highest_power)) return buckets - 1;
    const int power = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(ns))) - 1;  // an int in later standard libraries
    const auto part = static_cast<std::size_t>((ns >> (power - 2)) & (parts - 1));
    return 1 + static_cast<std::size_t>(power - lowest_power) * parts + part;
  }

  // The least duration in the bucket; bucket 0 begins at 0.
  static constexpr std::int64_t begin_of(std::size_t bucket) noexcept {
    if (bucket == 0) return 0;
    const std::size_t at = bucket - 1;
    const int power = lowest_power + static_cast<int>(at / parts);
    return (std::int64_t{1} << power) + static_cast<std::int64_t>(at % parts) * (std::int64_t{1} << (power - 2));
  }

  void add(std::int64_t ns) noexcept { counts_[bucket_of(ns)].fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t count(std::size_t bucket) const noexcept { return counts_[bucket].load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> counts_[buckets]{};
};

}  // namespace weft::base
