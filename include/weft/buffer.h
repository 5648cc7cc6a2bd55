// Where bytes are read to and written from. Whatever is contiguous and made of bytes (std::byte, char, unsigned char,
// char8_t) becomes one by itself: a span, an array, a vector, a string; to be written, also a string_view or a literal.
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {

template <class T>
concept byte_like = std::same_as<T, std::byte> || std::same_as<T, char> || std::same_as<T, unsigned char> ||
                    std::same_as<T, signed char> || std::same_as<T, char8_t>;

template <class R>
concept byte_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                     byte_like<std::remove_cv_t<std::ranges::range_value_t<R>>>;

template <class C>
concept text_char = std::same_as<C, char> || std::same_as<C, char8_t>;

template <class R>
inline constexpr bool is_const_chars =
    std::is_array_v<std::remove_reference_t<R>> && std::is_const_v<std::remove_extent_t<std::remove_reference_t<R>>> &&
    text_char<std::remove_cv_t<std::remove_extent_t<std::remove_reference_t<R>>>>;

// Of a type of its own that says what it is as one of these.
template <class T, class As>
concept says = !byte_range<T> && std::is_class_v<std::remove_cvref_t<T>> && std::convertible_to<T, As>;

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
  template <class T>
    requires(detail::says<T, std::span<std::byte>> && !std::same_as<std::remove_cvref_t<T>, mutable_buffer>)
  constexpr mutable_buffer(T&& t) : mutable_buffer(static_cast<std::span<std::byte>>(std::forward<T>(t))) {}

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
  // A string literal is text, without the zero at its end, whatever zeros it has before; an array that does not end so is a buffer, as
  // any other.
  template <detail::text_char C, std::size_t N>
  constexpr const_buffer(const C (&text)[N]) noexcept : data_(text), size_(text[N - 1] == 0 ? N - 1 : N) {}
  template <class T>
    requires(detail::says<T, std::string_view> && !std::same_as<std::remove_cvref_t<T>, const_buffer>)
  constexpr const_buffer(T&& t) : const_buffer(static_cast<std::string_view>(std::forward<T>(t))) {}
  template <class T>
    requires(detail::says<T, std::span<const std::byte>> && !detail::says<T, std::string_view> &&
             !std::same_as<std::remove_cvref_t<T>, const_buffer> && !std::same_as<std::remove_cvref_t<T>, mutable_buffer>)
  constexpr const_buffer(T&& t) : const_buffer(static_cast<std::span<const std::byte>>(std::forward<T>(t))) {}
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
