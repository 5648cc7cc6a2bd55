// What go() hands to the runtime: one cache line with the function and, if they are small, all of its captures and
// arguments. A goroutine that has not run yet is nothing but this record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <functional>

#include <weft/detail/errno.h>
#include <weft/detail/wait_reason.h>

namespace weft {

// Options of one goroutine.
struct go_options {
  std::string_view name = {};  // shown in dumps, messages and debuggers; copied. Initialized: else -Wextra asks for it
  std::size_t stack_size = 0;  // bytes reserved for its stack; 0: the runtime's default (options::stack_size)
};

namespace detail {

struct record;

// What a goroutine that was started with go_options keeps of them.
struct spawn_extras {
  std::string name;
  std::size_t stack_size = 0;
};

struct spawn_ops {
  void (*run)(record*);                           // calls the function, then destroys it; also when it is left by an exception
  const spawn_extras* (*extras)(const record*);   // nullptr: it has none
  bool has_joiner = false;                        // the payload begins with the address of what waits for its end
};

// Whatever can stand in a run queue: a record (ops is set) or a goroutine that has a stack (ops is null).
struct runnable {
  runnable* link = nullptr;
  const spawn_ops* ops = nullptr;
};

struct alignas(64) record : runnable {
  std::uint64_t creator = 0;           // id of the goroutine that called go(), 0 for a plain thread
  const void* creator_pc = nullptr;    // where it called it
  alignas(32) std::byte payload[32];
};
static_assert(sizeof(record) == 64);

record* allocate_record();             // starts the runtime if nobody has
void release_record(record*) noexcept; // one that was never submitted
void submit(record*) noexcept;         // makes it runnable
void forget_extras(record*) noexcept;  // its goroutine is about to destroy them: from here on nobody asks for them

// If the goroutine of this record, which was started with a joiner (see is_joined), stands where this P's newest ones stand
// and has not begun: runs it to its end, here and now, on the stack of the caller, who waits for it anyway. It has all that a
// goroutine has (number, locals, exceptions, ...); only the switches are saved. False, and nothing has happened, if it is
// elsewhere (the pointer is only compared: it may have ended long ago), if there is too little stack, and on plain threads.
// `in_turn`: only if it would be the next to run anyway. No child: the newest of the joiner's that stands there, if so many do that
// the order matters, and the caller is waited for itself. `sole`, if there is one, is told first that nobody else waits for it.
class event;
bool join_in_place(const record* child, const void* joiner, wait_reason why, bool in_turn, event* sole = nullptr) noexcept;

void check(const go_options&);         // throws std::invalid_argument for a stack size that makes no sense

// f(args...) with both decay-copied, as std::thread does it.
template <class F, class... Args>
struct bound_call {
  [[no_unique_address]] F function;
  [[no_unique_address]] std::tuple<Args...> arguments;

  void operator()() { std::apply([this](Args&... a) { std::invoke(std::move(function), std::move(a)...); }, arguments); }
};

// Whether a function object begins with the address of who waits for its end: ours that do specialize it.
template <class F>
inline constexpr bool begins_with_joiner = false;
template <class Call>
inline constexpr bool is_joined = false;
template <class F>
inline constexpr bool is_joined<bound_call<F>> = begins_with_joiner<F>;

template <class Call>
inline constexpr bool fits_inline = sizeof(Call) <= sizeof(record::payload) && alignof(Call) <= 32;

// After the last call of a goroutine's function: without it that call may take the function's place on the stack, and dumps would
// not show whose goroutine it is.
[[gnu::always_inline]] inline void keep_frame() noexcept { asm volatile(""); }

template <class Call>
struct inline_body {
  static Call* get(const record* r) noexcept { return std::launder(reinterpret_cast<Call*>(const_cast<std::byte*>(r->payload))); }
  static void run(record* r) {
    struct destroyer {
      Call* call;
      ~destroyer() { call->~Call(); }
    } guard{get(r)};
    (*guard.call)();
    keep_frame();
  }
  static constexpr spawn_ops ops{&run, nullptr, is_joined<Call>};
};

// A function too large for the record, or with options, lives in a block of its own; the record points to it.
template <class Call>
struct heap_block {
  spawn_extras extras;
  Call call;
};

template <class Call>
struct heap_body {
  using block = heap_block<Call>;
  static block* get(const record* r) noexcept {
    return *std::launder(reinterpret_cast<block* const*>(r->payload));
  }
  static void run(record* r) {
    struct destroyer {
      record* r;
      ~destroyer() {
        forget_extras(r);
        delete get(r);
      }
    } guard{r};
    get(r)->call();
    keep_frame();
  }
  static const spawn_extras* extras(const record* r) { return &get(r)->extras; }
  static constexpr spawn_ops ops{&run, &extras};
};

struct record_guard {
  record* r;
  ~record_guard() {
    if (r != nullptr) release_record(r);
  }
};

// Records that are ready to be submitted.
template <class Call, class... Parts>
[[gnu::always_inline]] inline record* make_inline(Parts&&... parts) {
  record_guard guard{allocate_record()};
  ::new (static_cast<void*>(guard.r->payload)) Call{std::forward<Parts>(parts)...};
  guard.r->ops = &inline_body<Call>::ops;
  return std::exchange(guard.r, nullptr);
}

template <class Call, class... Parts>
[[gnu::always_inline]] inline record* make_heap(const go_options& o, Parts&&... parts) {
  check(o);
  record_guard guard{allocate_record()};
  auto* block = new heap_block<Call>{{std::string(o.name), o.stack_size}, Call{std::forward<Parts>(parts)...}};
  ::new (static_cast<void*>(guard.r->payload)) heap_block<Call>*(block);
  guard.r->ops = &heap_body<Call>::ops;
  return std::exchange(guard.r, nullptr);
}

template <class F, class... Args>
[[gnu::always_inline]] inline record* make_record(F&& f, Args&&... args) {
  using call = bound_call<std::decay_t<F>, std::decay_t<Args>...>;
  using arguments = std::tuple<std::decay_t<Args>...>;
  if constexpr (fits_inline<call>) {
    return detail::make_inline<call>(std::forward<F>(f), arguments(std::forward<Args>(args)...));
  } else {
    return detail::make_heap<call>(go_options{}, std::forward<F>(f), arguments(std::forward<Args>(args)...));
  }
}

// [[gnu::always_inline]] so that the creator's program counter, taken in submit(), lies in the caller of go(). The record is
// returned only to be recognised: the goroutine may have ended already.
template <class F, class... Args>
[[gnu::always_inline]] inline const record* spawn(F&& f, Args&&... args) {
  record* r = detail::make_record(std::forward<F>(f), std::forward<Args>(args)...);
  submit(r);
  return r;
}

}  // namespace detail
}  // namespace weft
