// Channels: values from goroutine to goroutine, as in Go. Goroutines and plain threads may use the same channel.
#pragma once

#include <weft/detail/chan_core.h>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace weft {

template <class T>
class chan;
template <class T>
class send_chan;
template <class T>
class recv_chan;

namespace detail {

struct chan_access;

template <class T>
concept channel_element = std::is_object_v<T> && !std::is_array_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T> &&
                          std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>;

// Receives until the channel is closed and drained. Keeps the channel alive.
template <class T>
class recv_iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  recv_iterator() = default;
  explicit recv_iterator(chan_ptr c) : channel_(std::move(c)), value_(recv_from<T>(channel_.get())) {}
  recv_iterator(recv_iterator&&) = default;
  recv_iterator& operator=(recv_iterator&& other) noexcept {
    if (this == &other) return *this;
    value_.reset();
    if (other.value_) value_.emplace(std::move(*other.value_));
    channel_ = std::move(other.channel_);
    return *this;
  }

  T& operator*() const noexcept { return *value_; }
  T* operator->() const noexcept { return std::addressof(*value_); }
  recv_iterator& operator++() {
    value_.reset();
    if constexpr (is_bits<T>) {
      raw_element<T> element;
      if (detail::channel_recv(channel_.get(), std::addressof(element))) value_.emplace(std::move(element.value));
    } else {
      detail::channel_recv(channel_.get(), &value_);
    }
    return *this;
  }
  void operator++(int) { ++*this; }

  friend bool operator==(const recv_iterator& i, std::default_sentinel_t) noexcept { return !i.value_; }

 private:
  chan_ptr channel_;
  mutable std::optional<T> value_;
};

}  // namespace detail

// A handle, like Go's: copies refer to the same channel, which lives as long as one of them.
//
// A blocking call on one handle must not outlive that handle; apart from that all members may be called from anywhere
// at the same time.
template <class T>
class chan {
 public:
  using value_type = T;
  using iterator = detail::recv_iterator<T>;
  using sentinel = std::default_sentinel_t;

  // Unbuffered (capacity 0): a send waits for its receive. Buffered: a send waits only while the buffer is full.
  // std::length_error for a capacity that no memory could hold.
  chan() : chan(std::size_t{0}) {}
  explicit chan(std::size_t capacity) : core_(detail::make_channel_of<T>(capacity)) {
    // Here and not above, so that a type can have members that are channels of itself.
    static_assert(detail::channel_element<T>, "an element of a channel is an object that can be moved without throwing");
  }

  // The nil channel: sends and receives block for ever, in a select they are never chosen.
  template <std::same_as<std::nullptr_t> Nil>
  chan(Nil) noexcept {}

  // Parks until a receiver or the buffer has taken the value. channel_error if the channel is closed, or is being
  // closed while this waits.
  void send(T value) const { detail::channel_send(core_.get(), std::addressof(value)); }

  // Parks until there is a value; nullopt once the channel is closed and drained.
  std::optional<T> recv() const { return detail::recv_from<T>(core_.get()); }

  // False if send() would have to wait; the value is untouched then, and moved from otherwise.
  bool try_send(T& value) const { return detail::channel_try_send(core_.get(), std::addressof(value)); }
  bool try_send(T&& value) const { return detail::channel_try_send(core_.get(), std::addressof(value)); }
  template <class U = T>
    requires std::copy_constructible<U>
  bool try_send(const T& value) const {
    T copy(value);
    return try_send(copy);
  }

  template <class U = T>
    requires std::is_move_assignable_v<U>
  recv_status try_recv(T& out) const {
    return detail::try_recv_from(core_.get(), out);
  }

  // No more values: receivers get what is in the buffer, then nullopt; senders get a channel_error.
  void close() const { detail::channel_close(core_.get()); }

  // Elements in the buffer, and how many there can be; 0 for the nil channel.
  std::size_t size() const noexcept {
    return core_.get() != nullptr ? core_.get()->count.load(std::memory_order_acquire) : 0;
  }
  std::size_t capacity() const noexcept { return core_.get() != nullptr ? core_.get()->capacity : 0; }

  // for (T& v : ch): receives until the channel is closed and drained.
  iterator begin() const { return iterator(core_); }
  sentinel end() const noexcept { return {}; }

  explicit operator bool() const noexcept { return core_.get() != nullptr; }
  // Whether both are handles of the same channel.
  friend bool operator==(const chan& a, const chan& b) noexcept { return a.core_.get() == b.core_.get(); }

 private:
  friend struct detail::chan_access;

  detail::chan_ptr core_;
};

// A handle that can only send.
template <class T>
class send_chan {
 public:
  using value_type = T;

  send_chan() noexcept = default;  // nil, as from nullptr
  template <std::same_as<std::nullptr_t> Nil>
  send_chan(Nil) noexcept {}
  send_chan(chan<T> c) noexcept : channel_(std::move(c)) {}

  void send(T value) const { channel_.send(std::move(value)); }
  bool try_send(T& value) const { return channel_.try_send(value); }
  bool try_send(T&& value) const { return channel_.try_send(std::move(value)); }
  template <class U = T>
    requires std::copy_constructible<U>
  bool try_send(const T& value) const {
    return channel_.try_send(value);
  }
  void close() const { channel_.close(); }

  explicit operator bool() const noexcept { return static_cast<bool>(channel_); }
  friend bool operator==(const send_chan& a, const send_chan& b) noexcept { return a.channel_ == b.channel_; }

 private:
  friend struct detail::chan_access;

  chan<T> channel_ = nullptr;
};

// A handle that can only receive.
template <class T>
class recv_chan {
 public:
  using value_type = T;
  using iterator = detail::recv_iterator<T>;
  using sentinel = std::default_sentinel_t;

  recv_chan() noexcept = default;  // nil, as from nullptr
  template <std::same_as<std::nullptr_t> Nil>
  recv_chan(Nil) noexcept {}
  recv_chan(chan<T> c) noexcept : channel_(std::move(c)) {}

  std::optional<T> recv() const { return channel_.recv(); }
  template <class U = T>
    requires std::is_move_assignable_v<U>
  recv_status try_recv(T& out) const {
    return channel_.try_recv(out);
  }
  iterator begin() const { return channel_.begin(); }
  sentinel end() const noexcept { return {}; }

  explicit operator bool() const noexcept { return static_cast<bool>(channel_); }
  friend bool operator==(const recv_chan& a, const recv_chan& b) noexcept { return a.channel_ == b.channel_; }

 private:
  friend struct detail::chan_access;

  chan<T> channel_ = nullptr;
};

namespace detail {

// For select: the channel behind a handle.
struct chan_access {
  template <class T>
  static chan_ptr& of(chan<T>& c) noexcept {
    return c.core_;
  }
  template <class T>
  static chan_ptr& of(send_chan<T>& c) noexcept {
    return c.channel_.core_;
  }
  template <class T>
  static chan_ptr& of(recv_chan<T>& c) noexcept {
    return c.channel_.core_;
  }
  template <class Handle>
  static const chan_ptr& of(const Handle& c) noexcept {
    return of(const_cast<Handle&>(c));
  }
};

}  // namespace detail
}  // namespace weft
