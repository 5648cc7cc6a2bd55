// What chan<T> needs of the runtime: a channel of elements of which only size, alignment and a few operations are
// known. Compiled once, in src/chan. The invariants are told there, in channel.h.
//
// Elements come in two kinds.
//   bits     trivially copyable and small: copied as bytes, under the channel's lock
//   objects  all others: moved by element_ops, never under the lock. Who holds the lock only says which place is whose.
#pragma once

#include <weft/detail/errno.h>
#include <weft/detail/park.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace weft {

// What try_recv() found.
enum class recv_status { ok, empty, closed };

// Misuse of a channel: send on a closed one, close of a closed or of the nil one.
class channel_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

// Where a receiver wants an object is always a std::optional<T>, so that the one move of a hand-over makes the value
// that recv() returns.
struct element_ops {
  void (*construct)(void* place, void* from) noexcept;  // place: raw memory
  void (*deliver)(void* to, void* from) noexcept;       // to: std::optional<T>
  void (*take)(void* to, void* place) noexcept;         // deliver, then destroy what is left at the place
  void (*destroy)(void* place) noexcept;
};

template <class T>
inline constexpr element_ops ops_of{
    [](void* place, void* from) noexcept { ::new (place) T(std::move(*static_cast<T*>(from))); },
    [](void* to, void* from) noexcept {
      static_cast<std::optional<T>*>(to)->emplace(std::move(*static_cast<T*>(from)));
    },
    [](void* to, void* place) noexcept {
      static_cast<std::optional<T>*>(to)->emplace(std::move(*static_cast<T*>(place)));
      static_cast<T*>(place)->~T();
    },
    [](void* place) noexcept { static_cast<T*>(place)->~T(); },
};

template <class T>
inline constexpr bool is_bits = std::is_trivially_copyable_v<T> && sizeof(T) <= 64;

// Memory for one element of bits that is not there yet.
template <class T>
union raw_element {
  raw_element() noexcept {}
  T value;
};

struct select_state;

// One wait on one channel. On the stack of who waits, or in the storage of its select.
struct chan_waiter {
  chan_waiter* next;
  chan_waiter* previous;
  goroutine* g;
  void* value;           // the sender's element, or where the receiver wants it
  select_state* select;  // null: a plain send or receive
  std::uint32_t index;   // of the case, in a select
  bool queued;           // guarded by the channel's lock
  bool dropped;          // of a select that was claimed elsewhere: taken out of the queue by another than itself
  bool delivered;        // written by the waker: false: the channel was closed
};

// The part of a channel that headers look at.
struct chan_core {
  std::atomic<std::uint32_t> owners{1};
  std::uint32_t element_size = 0;
  std::size_t capacity = 0;
  std::atomic<std::size_t> count{0};  // elements; written under the lock
};

// std::length_error if there cannot be such a channel.
chan_core* make_channel(std::size_t capacity, std::size_t size, std::size_t alignment, const element_ops* ops);
void destroy_channel(chan_core* c) noexcept;

// Null is the nil channel. `value` is an element; `to` is room for one (bits) or an empty std::optional<T> (objects).
void channel_send(chan_core* c, void* value);
bool channel_recv(chan_core* c, void* to) noexcept;  // false: closed and drained
bool channel_try_send(chan_core* c, void* value);
recv_status channel_try_recv(chan_core* c, void* to) noexcept;
void channel_close(chan_core* c);
bool channel_close_quietly(chan_core* c) noexcept;  // not null. False: it was closed. No preemption point

// A counted pointer to a channel.
class chan_ptr {
 public:
  constexpr chan_ptr() noexcept = default;
  explicit constexpr chan_ptr(chan_core* adopted) noexcept : core_(adopted) {}
  chan_ptr(const chan_ptr& other) noexcept : core_(other.core_) { retain(core_); }
  chan_ptr(chan_ptr&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  chan_ptr& operator=(chan_ptr other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~chan_ptr() { release(core_); }

  chan_core* get() const noexcept { return core_; }
  chan_core* give_up() noexcept { return std::exchange(core_, nullptr); }

  static void retain(chan_core* c) noexcept {
    if (c != nullptr) c->owners.fetch_add(1, std::memory_order_relaxed);
  }
  static void release(chan_core* c) noexcept {
    if (c == nullptr) return;
    // [chan.owners] what the other owners did to the channel is visible to the last one, who destroys it. Who reads 1
    // is the only owner, so nobody can add one.
    if (c->owners.load(std::memory_order_acquire) == 1 || c->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy_channel(c);
    }
  }

 private:
  chan_core* core_ = nullptr;
};

template <class T>
chan_core* make_channel_of(std::size_t capacity) {
  if constexpr (is_bits<T>) {
    return make_channel(capacity, std::is_empty_v<T> ? 0 : sizeof(T), alignof(T), nullptr);
  } else {
    return make_channel(capacity, sizeof(T), alignof(T), &ops_of<T>);
  }
}

template <class T>
  requires is_bits<T>
std::optional<T> recv_from(chan_core* c) {
  raw_element<T> element;
  if (!detail::channel_recv(c, std::addressof(element))) return std::nullopt;
  return std::optional<T>(std::in_place, std::move(element.value));
}

// A function of its own: compilers construct the result in place only if the variable is not in an inner scope.
template <class T>
std::optional<T> recv_from(chan_core* c) {
  std::optional<T> element;
  detail::channel_recv(c, &element);
  return element;
}

template <class T>
recv_status try_recv_from(chan_core* c, T& out) {
  if constexpr (is_bits<T>) {
    raw_element<T> element;
    const recv_status status = detail::channel_try_recv(c, std::addressof(element));
    if (status == recv_status::ok) out = std::move(element.value);
    return status;
  } else {
    std::optional<T> element;
    const recv_status status = detail::channel_try_recv(c, &element);
    if (status == recv_status::ok) out = std::move(*element);
    return status;
  }
}

}  // namespace detail
}  // namespace weft
