// once_flag and call_once: as in std, for goroutines and plain threads alike.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include <weft/detail/errno.h>

namespace weft {

namespace detail {
struct waiter;
}

//   word_   fresh --begin()--> running --finish(true)--> done
//             ^                   |
//             +---finish(false)---+     the function was left by an exception: it may be called again
//           plus the guard of the queue of those that wait for the one that runs it
//   [once.done] release: what the function did is visible to who sees `done` with acquire
class once_flag {
 public:
  constexpr once_flag() noexcept = default;
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;

 private:
  template <class F, class... Args>
  friend void call_once(once_flag& flag, F&& f, Args&&... args);

  static constexpr std::uint32_t fresh = 0, running = 1, done = 2, guard = 4;

  bool is_done() const noexcept { return word_.load(std::memory_order_acquire) == done; }  // [once.done]
  bool begin() noexcept;  // true: the caller runs the function. False: it has been run
  bool begin_or_queue(detail::waiter& self, bool& queued) noexcept;
  void finish(bool success) noexcept;

  std::atomic<std::uint32_t> word_{fresh};
  detail::waiter* head_ = nullptr;
};

// Runs f(args...) unless a call_once with this flag has done so; returns when it has been done. If f throws, its caller
// gets the exception and the next one calls again. Not from within f with the same flag.
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  if (flag.is_done() || !flag.begin()) return;
  struct finisher {
    once_flag& flag;
    bool success = false;
    ~finisher() { flag.finish(success); }
  } guard{flag};
  std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
  guard.success = true;
}

}  // namespace weft
