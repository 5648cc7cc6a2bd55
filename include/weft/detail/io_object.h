// What everything that is made of a file descriptor has in common: deadlines, closing, and being moved.
#pragma once

#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

#include <weft/detail/time.h>

namespace weft::io {
class fd;
}

namespace weft::detail {

template <class Clock, class Duration>
std::int64_t io_deadline(const std::chrono::time_point<Clock, Duration>& t) {
  return t == std::chrono::time_point<Clock, Duration>::max() ? no_deadline : deadline_at(t);
}

// Any number of goroutines and threads may use one object at the same time, and one of them may close it meanwhile; only
// moving and destroying it is for one alone (a call that is under way in another then ends as after close()).
class io_object {
 public:
  io_object(io_object&& other) noexcept : fd_(std::exchange(other.fd_, nullptr)) {}
  io_object& operator=(io_object&& other) noexcept {
    if (this != &other) {
      release();
      fd_ = std::exchange(other.fd_, nullptr);
    }
    return *this;
  }
  ~io_object() { release(); }

  // From this time on calls that wait, and new calls, fail with std::errc::timed_out; calls that wait already too.
  // time_point::max(): never, as in the beginning.
  template <class Clock, class Duration>
  void set_deadline(const std::chrono::time_point<Clock, Duration>& t) {
    set_deadlines(io_deadline(t), true, true);
  }
  template <class Clock, class Duration>
  void set_read_deadline(const std::chrono::time_point<Clock, Duration>& t) {
    set_deadlines(io_deadline(t), true, false);
  }
  template <class Clock, class Duration>
  void set_write_deadline(const std::chrono::time_point<Clock, Duration>& t) {
    set_deadlines(io_deadline(t), false, true);
  }

  // Whoever is blocked on it, and whoever uses it later, fails with std::errc::operation_canceled. Twice is fine.
  void close() noexcept;

  // The descriptor; -1 if there is none (any more). Valid until close().
  int native_handle() const noexcept;

  bool is_open() const noexcept;
  explicit operator bool() const noexcept { return is_open(); }

 protected:
  io_object() noexcept = default;
  explicit io_object(io::fd* fd) noexcept : fd_(fd) {}

  io::fd* fd_ = nullptr;

 private:
  void set_deadlines(std::int64_t ns, bool read, bool write) noexcept;
  void release() noexcept;
};

}  // namespace weft::detail
