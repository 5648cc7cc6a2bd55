// select: waits for several sends, receives, timeouts and stop requests at once, and does exactly one of them.
//
//   weft::select(weft::on_recv(requests, [](std::optional<request> r) { … }),
//                weft::on_send(results, next),
//                weft::on_timeout(100ms, [] { … }));
//
// A case is meant to be written where it is used, but may also be kept in a variable and used again: of channel and
// handler it only refers to an lvalue, and keeps an rvalue; the value of a send it has. A selector keeps all of its own.
#pragma once

#include <weft/chan.h>
#include <weft/detail/select_core.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

struct no_handler {
  void operator()() const noexcept {}
};

template <class C>
concept select_case = requires {
  typename std::remove_cvref_t<C>::select_case_tag;
};

template <class C>
inline constexpr bool is_default_case = false;

// F is what forwarding deduced: an lvalue reference, or the type of an rvalue. So is it in all cases below. Each has
//   bind(slot, plan, index)   before the wait
//   run(delivered)            after it, if it has won
//   own(case)                 the same case, for a selector: refers to nothing outside, and can be waited for again
// and may have
//   bind_again(slot, plan, index)   instead of bind(), if it will be used again
//   give_back()                     after the wait, if it has not won
//
// TakesNothing: the handler has no use for the value.
template <class T, class F, bool TakesNothing = false>
class recv_case {
 public:
  using select_case_tag = void;

  template <class Channel, class Handler>
  recv_case(Channel&& c, Handler&& f) : channel_(std::forward<Channel>(c)), handler_(std::forward<Handler>(f)) {}

  void bind(select_slot& s, select_plan&, std::size_t) noexcept {
    s.kind = case_kind::recv;
    s.channel = channel_.get();
    if constexpr (!is_bits<T>) value_.reset();
    s.value = std::addressof(value_);
  }

  void run(bool delivered) {
    if constexpr (takes_value()) {
      if constexpr (is_bits<T>) {
        std::invoke(handler_, delivered ? std::optional<T>(std::in_place, std::move(value_.value)) : std::nullopt);
      } else if constexpr (requires { handler_(take()); }) {
        handler_(take());  // not std::invoke(): what take() returns is the handler's parameter itself
      } else {
        std::invoke(handler_, take());
      }
    } else {
      if constexpr (!is_bits<T>) value_.reset();
      std::invoke(handler_);
    }
  }

  template <class Self>
  static auto own(Self&& self) {
    return recv_case<T, std::decay_t<F>, TakesNothing>(self.channel_.share(), std::forward<Self>(self).handler_);
  }

 private:
  template <class, class, bool>
  friend class recv_case;

  static constexpr bool takes_value() {
    if constexpr (TakesNothing) {
      return false;  // and the question below is not put: a generic handler might not compile with a value
    } else {
      return std::is_invocable_v<F&, std::optional<T>>;
    }
  }

  // Not inlined: compilers would see that there may be none, and warn of a handler that does not ask.
  [[gnu::noinline]] std::optional<T> take() noexcept {
    std::optional<T> value(std::move(value_));
    value_.reset();
    return value;
  }

  case_channel channel_;
  [[no_unique_address]] F handler_;
  std::conditional_t<is_bits<T>, raw_element<T>, std::optional<T>> value_;
};

// A send of bits that can be copied: they are always there.
template <class T, class F>
class bits_send_case {
 public:
  using select_case_tag = void;

  template <class Channel, class Value, class Handler>
  bits_send_case(Channel&& c, Value&& value, Handler&& f)
      : channel_(std::forward<Channel>(c)), value_(std::forward<Value>(value)), handler_(std::forward<Handler>(f)) {}

  void bind(select_slot& s, select_plan&, std::size_t) noexcept {
    s.kind = case_kind::send;
    s.channel = channel_.get();
    s.value = std::addressof(value_);
  }

  void run(bool) { std::invoke(handler_); }

  template <class Self>
  static auto own(Self&& self) {
    return bits_send_case<T, std::decay_t<F>>(self.channel_.share(), self.value_, std::forward<Self>(self).handler_);
  }

 private:
  case_channel channel_;
  T value_;
  [[no_unique_address]] F handler_;
};

// As a default argument it lives as long as the expression of the call, and with it all that was given to the call. It
// tells its end.
class full_expression {
 public:
  full_expression() noexcept = default;
  full_expression(const full_expression&) = delete;
  full_expression& operator=(const full_expression&) = delete;
  ~full_expression() {
    if (told_ != nullptr) *told_ = nullptr;
  }

  // `told` is this until the end, and null from then on.
  void tell_to(full_expression*& told) noexcept {
    told_ = &told;
    told = this;
  }
  void tell_nobody() noexcept { told_ = nullptr; }

 private:
  full_expression** told_ = nullptr;
};

// Room for an object in a case. A large one goes to the heap: the stack, where cases are, has it already.
template <class T>
using object_room = std::conditional_t<(sizeof(T) > 512), std::unique_ptr<T>, std::optional<T>>;

template <class T, class From>
void put_object(std::unique_ptr<T>& room, From&& from) {
  room = std::make_unique<T>(std::forward<From>(from));
}
template <class T, class From>
void put_object(std::optional<T>& room, From&& from) {
  room.emplace(std::forward<From>(from));
}

// A send of an object. It has the object, so that the case can be kept. One that was an rvalue goes back to where it was
// if the case does not win, as long as that place is certain to be there.
//
// A case that is kept sends the object again each time it wins, if that can be copied, else once.
template <class T, class F>
class object_send_case {
 public:
  using select_case_tag = void;

  template <class Channel, class Value, class Handler>
  object_send_case(Channel&& c, Value&& value, Handler&& f)
      : channel_(std::forward<Channel>(c)), handler_(std::forward<Handler>(f)) {
    put_object(value_, std::forward<Value>(value));
  }
  template <class Channel, class Handler>
  object_send_case(Channel&& c, T&& value, full_expression& expression, Handler&& f)
      : object_send_case(std::forward<Channel>(c), std::move(value), std::forward<Handler>(f)) {
    origin_ = std::addressof(value);
    expression.tell_to(expression_);
  }
  object_send_case(const object_send_case&) = delete;
  object_send_case& operator=(const object_send_case&) = delete;
  ~object_send_case() {
    give_back();
    if (expression_ != nullptr) expression_->tell_nobody();
  }

  void bind(select_slot& s, select_plan&, std::size_t) noexcept { bind_to(s, channel_.get(), *value_); }

  // The case is kept.
  void bind_again(select_slot& s, select_plan&, std::size_t) {
    if constexpr (std::is_copy_constructible_v<T>) {
      if (!copy_) put_object(copy_, std::as_const(*value_));
      bind_to(s, channel_.get(), *copy_);
    } else {
      bind_to(s, spent_ ? nullptr : channel_.get(), *value_);
    }
  }

  void run(bool) {
    origin_ = nullptr;
    spent_ = true;
    copy_.reset();
    std::invoke(handler_);
  }

  // It has not won.
  void give_back() noexcept {
    T* origin = std::exchange(origin_, nullptr);
    if (origin == nullptr || expression_ == nullptr) return;
    if constexpr (std::is_nothrow_move_assignable_v<T>) {
      *origin = std::move(*value_);
    } else {
      std::destroy_at(origin);
      std::construct_at(origin, std::move(*value_));
    }
  }

  template <class Self>
  static auto own(Self&& self) {
    self.origin_ = nullptr;
    using value = std::conditional_t<std::is_lvalue_reference_v<Self> && std::is_copy_constructible_v<T>, const T&, T&&>;
    return object_send_case<T, std::decay_t<F>>(self.channel_.share(), static_cast<value>(*self.value_),
                                                std::forward<Self>(self).handler_);
  }

 private:
  template <class, class>
  friend class object_send_case;

  static void bind_to(select_slot& s, chan_core* channel, T& value) noexcept {
    s.kind = case_kind::send;
    s.channel = channel;
    s.value = std::addressof(value);
  }

  case_channel channel_;
  object_room<T> value_;
  object_room<T> copy_;  // what is moved from, if value_ must stay
  T* origin_ = nullptr;
  full_expression* expression_ = nullptr;  // the one in which origin_ is there
  bool spent_ = false;
  [[no_unique_address]] F handler_;
};

template <class F>
class timeout_case {
 public:
  using select_case_tag = void;

  template <class Handler>
  timeout_case(std::int64_t ns, Handler&& f) : ns_(ns), handler_(std::forward<Handler>(f)) {}

  void bind(select_slot& s, select_plan& plan, std::size_t index) noexcept {
    s.kind = case_kind::inert;
    s.channel = nullptr;
    if (ns_ == no_deadline || ns_ >= plan.timeout_ns) return;
    plan.timeout_ns = ns_;
    plan.timeout_case = index;
  }

  void run(bool) { std::invoke(handler_); }

  template <class Self>
  static auto own(Self&& self) {
    return timeout_case<std::decay_t<F>>(self.ns_, std::forward<Self>(self).handler_);
  }

 private:
  std::int64_t ns_;
  [[no_unique_address]] F handler_;
};

template <class F>
class stop_case {
 public:
  using select_case_tag = void;

  template <class Handler>
  stop_case(std::stop_token token, Handler&& f)
      : waiter_{std::move(token), std::nullopt}, handler_(std::forward<Handler>(f)) {}

  void bind(select_slot& s, select_plan& plan, std::size_t) noexcept {
    s.kind = case_kind::stop;
    s.channel = nullptr;
    s.value = &waiter_;
    plan.has_stop = plan.has_stop || waiter_.token.stop_possible();
  }

  void run(bool) { std::invoke(handler_); }

  template <class Self>
  static auto own(Self&& self) {
    return stop_case<std::decay_t<F>>(self.waiter_.token, std::forward<Self>(self).handler_);
  }

 private:
  stop_waiter waiter_;
  [[no_unique_address]] F handler_;
};

template <class F>
class default_case {
 public:
  using select_case_tag = void;

  template <class Handler>
    requires(!std::same_as<std::remove_cvref_t<Handler>, default_case>)
  explicit default_case(Handler&& f) : handler_(std::forward<Handler>(f)) {}

  void bind(select_slot& s, select_plan& plan, std::size_t index) noexcept {
    s.kind = case_kind::inert;
    s.channel = nullptr;
    plan.default_case = index;
  }

  void run(bool) { std::invoke(handler_); }

  template <class Self>
  static auto own(Self&& self) {
    return default_case<std::decay_t<F>>(std::forward<Self>(self).handler_);
  }

 private:
  [[no_unique_address]] F handler_;
};

template <class F>
inline constexpr bool is_default_case<default_case<F>> = true;

// The channel behind a handle: borrowed from an lvalue, taken from an rvalue.
template <class Handle>
decltype(auto) channel_behind(Handle&& h) noexcept {
  if constexpr (std::is_lvalue_reference_v<Handle>) {
    return chan_access::of(std::as_const(h));
  } else if constexpr (std::is_const_v<Handle>) {
    return chan_ptr(chan_access::of(h));
  } else {
    return chan_ptr(std::move(chan_access::of(h)));
  }
}

// A case that is given as an lvalue, or that a selector has, will be used again.
template <class Case>
void bind_case(Case&& c, select_slot& s, select_plan& plan, std::size_t index) {
  s.delivered = false;
  if constexpr (std::is_lvalue_reference_v<Case> && requires { c.bind_again(s, plan, index); }) {
    c.bind_again(s, plan, index);
  } else {
    c.bind(s, plan, index);
  }
}

template <class Case>
void give_back([[maybe_unused]] Case& c) noexcept {
  if constexpr (requires { c.give_back(); }) c.give_back();
}

template <class Handle>
using element_of = typename std::remove_cvref_t<Handle>::value_type;

template <class H, class T>
concept handle_for_recv = std::same_as<H, chan<T>> || std::same_as<H, recv_chan<T>>;
template <class H, class T>
concept handle_for_send = std::same_as<H, chan<T>> || std::same_as<H, send_chan<T>>;

template <class H>
concept recv_handle = handle_for_recv<std::remove_cvref_t<H>, element_of<H>>;
template <class H>
concept send_handle = handle_for_send<std::remove_cvref_t<H>, element_of<H>>;

}  // namespace detail

// A receive. The handler is called with a std::optional<T>, nullopt if the channel is closed and drained; or without
// arguments, if that is what it takes.
template <detail::recv_handle Channel, class F = detail::no_handler>
  requires(std::is_invocable_v<F&, std::optional<detail::element_of<Channel>>> || std::is_invocable_v<F&>)
[[nodiscard]] auto on_recv(Channel&& ch, F&& f = {}) {
  return detail::recv_case<detail::element_of<Channel>, F>(detail::channel_behind(std::forward<Channel>(ch)),
                                                           std::forward<F>(f));
}

// A send. An lvalue is copied. An rvalue is moved from; if the case does not win, it has its value back when a handler is
// called and after the select (but not from a case that was kept in a variable, or given to a selector). A case that is kept
// sends its value again if that can be copied, and is ready only once if not. channel_error if the case is chosen and the
// channel is closed. One object can be moved into one case only: what is to go to whichever of two channels can take it is
// given to both as an lvalue, or by a pointer. The last argument is not for callers.
template <detail::send_handle Channel, class U = detail::element_of<Channel>, class F = detail::no_handler>
  requires(std::is_constructible_v<detail::element_of<Channel>, U> && std::is_invocable_v<F&>)
[[nodiscard]] auto on_send(Channel&& ch, U&& value, F&& f = {}, [[maybe_unused]] detail::full_expression&& expression = {}) {
  using T = detail::element_of<Channel>;
  if constexpr (detail::is_bits<T> && std::is_copy_constructible_v<T>) {
    return detail::bits_send_case<T, F>(detail::channel_behind(std::forward<Channel>(ch)), std::forward<U>(value),
                                        std::forward<F>(f));
  } else if constexpr (std::same_as<U, T>) {
    return detail::object_send_case<T, F>(detail::channel_behind(std::forward<Channel>(ch)), std::move(value), expression,
                                          std::forward<F>(f));
  } else {
    return detail::object_send_case<T, F>(detail::channel_behind(std::forward<Channel>(ch)), std::forward<U>(value),
                                          std::forward<F>(f));
  }
}

// Nothing else was ready for this long. With 0 (or less) it runs if nothing else is ready at once; a bare 0 will do.
template <class Rep, class Period, class F = detail::no_handler>
  requires std::is_invocable_v<F&>
[[nodiscard]] auto on_timeout(const std::chrono::duration<Rep, Period>& d, F&& f = {}) {
  return detail::timeout_case<F>(detail::to_ns(d), std::forward<F>(f));
}

template <class F = detail::no_handler>
  requires std::is_invocable_v<F&>
[[nodiscard]] auto on_timeout(std::nullptr_t /* what only a literal 0 is, too */, F&& f = {}) {
  return on_timeout(std::chrono::seconds(0), std::forward<F>(f));
}

// A stop has been requested.
template <class F = detail::no_handler>
  requires std::is_invocable_v<F&>
[[nodiscard]] auto on_stop(std::stop_token token, F&& f = {}) {
  return detail::stop_case<F>(std::move(token), std::forward<F>(f));
}

// A context, or anything else whose done() is a channel to receive from, is done.
template <class Context, class F = detail::no_handler>
  requires(std::is_invocable_v<F&> && requires(const Context& c) {
    { c.done() } -> detail::recv_handle;
  })
[[nodiscard]] auto on_done(const Context& context, F&& f = {}) {
  using T = detail::element_of<decltype(context.done())>;
  return detail::recv_case<T, F, true>(detail::channel_behind(context.done()), std::forward<F>(f));
}

// Nothing else is ready.
template <class F = detail::no_handler>
  requires std::is_invocable_v<F&>
[[nodiscard]] auto on_default(F&& f = {}) { return detail::default_case<F>(std::forward<F>(f)); }

// Parks until a case can go on, chooses uniformly among those that can, does it, calls its handler on this goroutine,
// and returns its index. Nil channels never can; without any case that can it blocks for ever. What a handler throws
// leaves select().
template <class... Cases>
  requires(detail::select_case<Cases> && ...)
std::size_t select(Cases&&... cases) {
  static_assert((0 + ... + (detail::is_default_case<std::remove_cvref_t<Cases>> ? 1 : 0)) <= 1,
                "a select has at most one default");
  detail::select_slot slots[sizeof...(Cases) + (sizeof...(Cases) == 0 ? 1 : 0)];
  detail::select_plan plan;
  std::size_t index = 0;
  ((detail::bind_case(std::forward<Cases>(cases), slots[index], plan, index), ++index), ...);
  const std::size_t won = detail::select_wait(slots, sizeof...(Cases), plan);
  index = 0;
  ((won != index++ ? detail::give_back(cases) : void()), ...);
  index = 0;
  ((won == index++ ? cases.run(slots[won].delivered) : void()), ...);
  return won;
}

// A select whose number of cases is known only at run time. May wait any number of times with the same cases: a send
// case sends its value again if that can be copied, and is ready only once if not. For one goroutine at a time.
class selector {
 public:
  selector() = default;
  selector(selector&&) noexcept = default;
  selector& operator=(selector&&) noexcept = default;

  // Returns the index that wait() returns when this case wins. std::logic_error for a second default.
  template <detail::select_case Case>
  std::size_t add(Case&& c) {
    constexpr bool is_default = detail::is_default_case<std::remove_cvref_t<Case>>;
    if (is_default && has_default_) throw std::logic_error("weft::selector: a select has at most one default");
    using owned = decltype(std::remove_cvref_t<Case>::own(std::forward<Case>(c)));
    slots_.reserve(cases_.size() + 1);
    cases_.push_back(
        std::make_unique<kept_case<owned>>([&] { return std::remove_cvref_t<Case>::own(std::forward<Case>(c)); }));
    slots_.emplace_back();
    has_default_ = has_default_ || is_default;
    ordered_ = 0;
    return cases_.size() - 1;
  }

  std::size_t size() const noexcept { return cases_.size(); }

  // As select().
  std::size_t wait() {
    detail::select_plan plan;
    plan.ordered = ordered_;
    for (std::size_t i = 0; i < cases_.size(); ++i) cases_[i]->bind(slots_[i], plan, i);
    const std::size_t won = detail::select_wait(slots_.data(), slots_.size(), plan);
    ordered_ = plan.ordered;
    cases_[won]->run(slots_[won].delivered);
    return won;
  }

 private:
  struct any_case {
    virtual ~any_case() = default;
    virtual void bind(detail::select_slot& s, detail::select_plan& plan, std::size_t index) = 0;
    virtual void run(bool delivered) = 0;
  };

  template <class C>
  struct kept_case final : any_case {
    template <class Make>
    explicit kept_case(const Make& make) : c(make()) {}
    void bind(detail::select_slot& s, detail::select_plan& plan, std::size_t index) override { detail::bind_case(c, s, plan, index); }
    void run(bool delivered) override { c.run(delivered); }
    C c;
  };

  std::vector<std::unique_ptr<any_case>> cases_;
  std::vector<detail::select_slot> slots_;
  bool has_default_ = false;
  std::uint32_t ordered_ = 0;
};

}  // namespace weft
