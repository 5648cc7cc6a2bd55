// Cancellation that travels down a tree of calls: Go's context.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

#include <weft/chan.h>
#include <weft/detail/time.h>
#include <weft/errc.h>

namespace weft {

namespace detail {

class context_node;
void retain(context_node* n) noexcept;
void release(context_node* n) noexcept;

// A counted pointer to a node of the tree; null is the background.
class context_ref {
 public:
  constexpr context_ref() noexcept = default;
  explicit constexpr context_ref(context_node* adopted) noexcept : node_(adopted) {}
  context_ref(const context_ref& other) noexcept : node_(other.node_) {
    if (node_ != nullptr) retain(node_);
  }
  context_ref(context_ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  context_ref& operator=(context_ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~context_ref() {
    if (node_ != nullptr) release(node_);
  }

  context_node* get() const noexcept { return node_; }
  context_node* give_up() noexcept { return std::exchange(node_, nullptr); }
  friend bool operator==(const context_ref&, const context_ref&) = default;

 private:
  context_node* node_ = nullptr;
};

// A key and its value, type-erased. Keys are equal if their types and their values are; a type without members, as in Go's
// `type key struct{}`, has one value and needs no ==.
class context_value {
 public:
  virtual ~context_value() = default;
  virtual bool has_key(const std::type_info& type, const void* key) const = 0;
  virtual const void* value(const std::type_info& type) const = 0;
};

template <class K, class V>
class keyed_value final : public context_value {
 public:
  template <class Key, class Value>
  keyed_value(Key&& k, Value&& v) : key_(std::forward<Key>(k)), value_(std::forward<Value>(v)) {}
  bool has_key(const std::type_info& type, const void* key) const override {
    if (type != typeid(K)) return false;
    if constexpr (std::is_empty_v<K> && !std::equality_comparable<K>) {
      return true;
    } else {
      return *static_cast<const K*>(key) == key_;
    }
  }
  const void* value(const std::type_info& type) const override { return type == typeid(V) ? &value_ : nullptr; }

 private:
  K key_;
  V value_;
};

// Text as a key means its characters, whichever of the usual types it has.
template <class K>
using context_key = std::conditional_t<std::is_convertible_v<std::decay_t<K>, const char*> || std::is_same_v<std::decay_t<K>, std::string_view>,
                                       std::string, std::decay_t<K>>;

context_ref make_cancelable(const context_ref& parent, std::int64_t deadline_ns);
context_ref make_valued(const context_ref& parent, std::unique_ptr<context_value> value);
void cancel(context_node& node) noexcept;
recv_chan<std::monostate> done_of(const context_ref& node);
std::error_code error_of(const context_ref& node);
std::stop_token token_of(const context_ref& node);
std::int64_t deadline_of(const context_ref& node);
const void* value_of(const context_ref& node, const std::type_info& key_type, const void* key, const std::type_info& value_type);

}  // namespace detail

// A handle: copies refer to the same context. The default one, and background(), is never cancelled.
class context {
 public:
  context() noexcept = default;

  // Closed when this context is cancelled; the nil channel if that can never happen. Once all handles of the context and its cancel
  // function are gone, nobody cancels it any more, but for its deadline if it has one.
  recv_chan<std::monostate> done() const { return detail::done_of(node_); }
  // Why: errc::canceled or errc::deadline_exceeded. No error as long as done() is open.
  std::error_code error() const { return detail::error_of(node_); }
  // The same as a std::stop_token, for code that knows those. A context with a deadline that has given one lives until it is cancelled.
  std::stop_token token() const { return detail::token_of(node_); }
  // When it will be cancelled at the latest.
  std::optional<std::chrono::steady_clock::time_point> deadline() const {
    const std::int64_t ns = detail::deadline_of(node_);
    if (ns == detail::no_deadline) return std::nullopt;
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
  }
  // The value that the nearest with_value() gave to this key; null if there is none, or it is of another type.
  template <class V, class K>
  const V* value(const K& key) const {
    const detail::context_key<K> wanted(key);
    return static_cast<const V*>(detail::value_of(node_, typeid(wanted), &wanted, typeid(V)));
  }

  friend bool operator==(const context&, const context&) = default;

 private:
  friend class cancel_function;
  friend std::pair<context, class cancel_function> with_cancel(const context& parent);
  template <class Clock, class Duration>
  friend std::pair<context, class cancel_function> with_deadline(const context&, const std::chrono::time_point<Clock, Duration>&);
  template <class Rep, class Period>
  friend std::pair<context, class cancel_function> with_timeout(const context&, const std::chrono::duration<Rep, Period>&);
  template <class K, class V>
  friend context with_value(const context&, K&&, V&&);

  explicit context(detail::context_ref node) noexcept : node_(std::move(node)) {}

  detail::context_ref node_;
};

// Cancels its context and all that were derived from it. May be called any number of times, from anywhere, copied, or
// dropped without a call: a context that nobody refers to any more leaves its parent by itself.
class cancel_function {
 public:
  cancel_function() noexcept = default;
  explicit cancel_function(const context& c) noexcept : node_(c.node_) {}
  void operator()() const noexcept {
    if (node_.get() != nullptr) detail::cancel(*node_.get());
  }

 private:
  detail::context_ref node_;
};

inline context background() noexcept { return {}; }

inline std::pair<context, cancel_function> with_cancel(const context& parent) {
  context c(detail::make_cancelable(parent.node_, detail::no_deadline));
  return {c, cancel_function(c)};
}

// Also cancelled, with errc::deadline_exceeded, at this time.
template <class Clock, class Duration>
std::pair<context, cancel_function> with_deadline(const context& parent, const std::chrono::time_point<Clock, Duration>& t) {
  context c(detail::make_cancelable(parent.node_, detail::deadline_at(t)));
  return {c, cancel_function(c)};
}

template <class Rep, class Period>
std::pair<context, cancel_function> with_timeout(const context& parent, const std::chrono::duration<Rep, Period>& d) {
  context c(detail::make_cancelable(parent.node_, detail::deadline_after(d)));
  return {c, cancel_function(c)};
}

// A context with one value more. Keys need ==; use a type of your own for a key that nobody else has.
template <class K, class V>
context with_value(const context& parent, K&& key, V&& value) {
  using pair = detail::keyed_value<detail::context_key<K>, std::decay_t<V>>;
  return context(detail::make_valued(parent.node_, std::make_unique<pair>(std::forward<K>(key), std::forward<V>(value))));
}

}  // namespace weft
