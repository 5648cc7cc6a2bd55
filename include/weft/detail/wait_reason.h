// Why a goroutine waits, in Go's words, for dumps and statistics.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::detail {

enum class wait_reason : std::uint8_t {
  none,
  chan_receive,
  chan_receive_nil,
  chan_send,
  chan_send_nil,
  select,
  select_no_cases,
  mutex_lock,
  rwmutex_rlock,
  rwmutex_lock,
  cond_wait,
  semaphore,
  wait_group,
  latch,
  barrier,
  once,
  future,
  sleep,
  io_wait,
  count_,
};

constexpr std::string_view to_string(wait_reason r) noexcept {
  constexpr std::string_view names[] = {
      "",           "chan receive",       "chan receive (nil chan)", "chan send",       "chan send (nil chan)",
      "select",     "select (no cases)",  "sync.Mutex.Lock",         "sync.RWMutex.RLock", "sync.RWMutex.Lock",
      "sync.Cond.Wait", "semacquire",     "sync.WaitGroup.Wait",     "latch wait",      "barrier wait",
      "sync.Once.Do",   "future wait",    "sleep",                   "IO wait",
  };
  static_assert(sizeof names / sizeof *names == static_cast<std::size_t>(wait_reason::count_));
  return names[static_cast<std::size_t>(r)];
}

}  // namespace weft::detail
