// What kind of build this is, for tests whose size or claim depends on it.
#pragma once

#include <cstddef>

namespace test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_asan = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif
#else
inline constexpr bool under_asan = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_tsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
#else
inline constexpr bool under_tsan = false;
#endif

inline constexpr bool under_sanitizer = under_asan || under_tsan;

// A sanitizer makes everything slower and larger, and TSan knows no more than about 8000 fibers at once.
constexpr std::size_t scaled(std::size_t plain, std::size_t asan, std::size_t tsan) {
  return under_asan ? asan : under_tsan ? tsan : plain;
}

}  // namespace test
