// Where bytes are read to and written from. Whatever is contiguous and made of bytes (std::byte, char, unsigned char,
// char8_t) becomes one by itself: a span, an array, a vector, a string; to be written, also a string_view or a literal.
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

namespace weft {

namespace detail {

template <class T>
concept byte_like = std::same_as<T, std::byte> || std::same_as<T, char> || std::same_as<T, unsigned char> ||
                    std::same_as<T, signed char> || std::same_as<T, char8_t>;

template <class R>
concept byte_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                     byte_like<std::remove_cv_t<std::ranges::range_value_t<R>>>;

template <class R>
inline constexpr bool is_const_chars =
    std::is_array_v<std::remove_reference_t<R>> && std::same_as<std::remove_extent_t<std::remove_reference_t<R>>, const char>;

template <class T>
concept char_pointer = std::same_as<std::remove_cvref_t<T>, const char*> || std::same_as<std::remove_cvref_t<T>, char*>;

}  // namespace detail

class mutable_buffer {
 public:
  constexpr mutable_buffer() noexcept = default;
  constexpr mutable_buffer(void* data, std::size_t size) noexcept : data_(data), size_(size) {}

  template <detail::byte_range R>
    requires(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>> &&
             (std::is_lvalue_reference_v<R> || std::ranges::borrowed_range<R>))
  constexpr mutable_buffer(R&& r) noexcept : data_(std::ranges::data(r)), size_(std::ranges::size(r)) {}

  constexpr void* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

class const_buffer {
 public:
  constexpr const_buffer() noexcept = default;
  constexpr const_buffer(const void* data, std::size_t size) noexcept : data_(data), size_(size) {}
  constexpr const_buffer(detail::char_pointer auto&& text) noexcept : const_buffer(std::string_view(text)) {}
  // A string literal is text, without the zero at its end; an array that does not end so is a buffer, as any other.
  template <std::size_t N>
  constexpr const_buffer(const char (&text)[N]) noexcept
      : const_buffer(text[N - 1] == 0 ? std::string_view(text) : std::string_view(text, N)) {}
  constexpr const_buffer(mutable_buffer b) noexcept : data_(b.data()), size_(b.size()) {}

  template <detail::byte_range R>
    requires(!detail::is_const_chars<R>)
  constexpr const_buffer(R&& r) noexcept : data_(std::ranges::data(r)), size_(std::ranges::size(r)) {}

  constexpr const void* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }

 private:
  const void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft
