// A file descriptor that goroutines and threads use at the same time, and that one of them may close meanwhile.
//
// The number must not be closed while a system call may still use it: it could be another file's by then. So each use
// counts itself in one word, and the last one to leave after close() closes the number.
//
//   word:  uses     how many calls are under way
//          closed   set once, by close(); no new use begins after it, so `uses` falls to zero once
//          gone     the number and the poll descriptor were given back: by who brought `uses` to zero
//          released the object that owned it is destroyed: whichever of `gone` and `released` is set second frees this
//
// One reader and one writer at a time: whoever else comes waits for the lock of its direction. When the fd is closed, or
// its deadline comes, the one in front fails and lets the next one find out.
//
// It is watched by the poller from its first wait on: a connection that never waits never costs an epoll_ctl.
//
// A borrowed number may be closed, and be another file's, as soon as the calls of its owner have failed. So close() has the poller
// forget it before it wakes anybody; and who comes to watch it at that moment looks whether it was closed, and does so itself.
//   [fd.watch] sets `closed` and then looks at `is_watched_`; sets `is_watched_` and then looks at `closed`. All four seq_cst.
//
//   [fd.use]  release by end(), acquire by the one that closes: all use comes before the close
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include <weft/mutex.h>

#include "poll/descriptor.h"
#include "sched/netpoll.h"

namespace weft::io {

using poll::direction;
using poll::reading;
using poll::writing;

enum class ownership { owned, borrowed };

class fd {
 public:
  // Takes the number over (if owned) also when it throws.
  explicit fd(int number, ownership owner = ownership::owned);
  fd(const fd&) = delete;
  fd& operator=(const fd&) = delete;

  // A use. False: closed.
  bool begin() noexcept;
  void end() noexcept;

  void close() noexcept;
  // The owner is gone; closes.
  void release() noexcept;
  bool is_open() const noexcept { return (word_.load(std::memory_order_acquire) & closed) == 0; }

  int number() const noexcept { return number_; }
  // The number is known outside: duplicates of it may exist, and it may be used in ways that we know nothing of.
  int expose() noexcept;

  // In a use. 0, or why a call may not even be tried.
  int check(direction which) const noexcept;
  // In a use that has the lock of the direction. 0: try again; else an error number.
  int wait(direction which, std::int64_t limit = poll::no_deadline);

  void set_deadline(direction which, std::int64_t deadline_ns) noexcept;

  // In a use. Who waits there tries its call again.
  void look_again(direction which) noexcept { sched::alert(*poll_, which); }

  detail::mutex_core& lock(direction which) noexcept { return locks_[which]; }

  // Behind the lock of `reading`. A short read of a TCP socket has emptied it, and whatever comes later is a new event: the
  // next read need not try before it waits. That is not so once the peer has hung up or sent urgent data (no further event
  // may come), or if somebody else does things with the descriptor.
  void note_short_read() noexcept { drained_ = true; }
  bool take_drained() noexcept {
    const bool was = drained_;
    drained_ = false;
    // acquire of the slot's word came before, if the event was seen at all: [slot.waiter]
    return was && !poll_->exceptional.load(std::memory_order_relaxed) && !exposed_.load(std::memory_order_relaxed);
  }

  // What the maker of the fd says, before anybody else has it.
  bool stream = false;
  bool tcp = false;            // short reads tell something
  bool blocking = false;       // a regular file: calls block the thread
  bool signals_pipe = false;   // a write may raise SIGPIPE
  int family = 0;
  bool appends = false;        // a file whose writes all go to its end
  std::string unlink_path;     // removed by close()
  // The other end, where it cannot change, as the system writes it: known also when the connection is gone, and the system does not know.
  std::array<std::byte, 28> peer{};
  std::uint8_t peer_size = 0;

 private:
  static constexpr std::uint64_t closed = 1, gone = 2, released = 4, use = 8;

  ~fd() = default;
  int watch();
  int watch_first();
  void unwatch() noexcept;
  void give_back() noexcept;
  void mark(std::uint64_t second, std::uint64_t first) noexcept;

  std::atomic<std::uint64_t> word_{0};
  const int number_;
  int watched_;  // the number that the poller knows: number_, or a duplicate
  poll::descriptor* poll_;
  std::atomic<bool> watched_yet_{false};  // somebody has begun to
  std::atomic<bool> is_watched_{false};   // the poller knows it
  std::atomic<bool> exposed_{false};
  const bool owned_;
  bool drained_ = false;
  detail::mutex_core locks_[2];
};

// One call in one direction: a use, and the lock.
class operation {
 public:
  operation(fd* f, direction which) noexcept;
  ~operation();
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;

  // Not 0: the call fails with this error before it has begun.
  int error() const noexcept { return error_; }
  fd& file() const noexcept { return *fd_; }

  // 0, or why it may not go on, though it need not wait: it was closed, or its deadline has come.
  int check() const noexcept { return fd_->is_open() ? fd_->check(which_) : ECANCELED; }

  // Repeats call(number), which returns a result or a negative error number, until it does not ask to wait.
  template <class Call>
  long run(Call call) {
    for (;;) {
      const long n = call(fd_->number());
      if (n == -EINTR) continue;
      if (n != -EAGAIN) return n;
      if (const int error = fd_->wait(which_)) return -error;
    }
  }

 private:
  fd* fd_;
  const direction which_;
  int error_;
};

// A use without a lock, for what never waits.
class brief_use {
 public:
  explicit brief_use(fd* f) noexcept : fd_(f), error_(f == nullptr ? EBADF : f->begin() ? 0 : ECANCELED) {}
  ~brief_use() {
    if (error_ == 0) fd_->end();
  }
  brief_use(const brief_use&) = delete;
  brief_use& operator=(const brief_use&) = delete;

  int error() const noexcept { return error_; }
  // What owns it may be gone meanwhile: it is not to be asked again.
  fd& file() const noexcept { return *fd_; }

 private:
  fd* fd_;
  const int error_;
};

}  // namespace weft::io
