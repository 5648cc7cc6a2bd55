#include "io/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <weft/blocking.h>
#include <weft/detail/io_object.h>

#include "base/delay.h"
#include "os/clock.h"
#include "sched/finishing.h"
#include "sched/fork.h"
#include "sched/section.h"

namespace weft::io {

fd::fd(int number, ownership owner) : number_(number), watched_(number), owned_(owner == ownership::owned) {
  const sched::section section;
  poll_ = poll::take_descriptor();
}

bool fd::begin() noexcept {
  std::uint64_t w = word_.load(std::memory_order_relaxed);
  do {
    if ((w & closed) != 0) return false;
    base::delay();
  } while (!word_.compare_exchange_weak(w, w + use, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void fd::end() noexcept {
  base::delay();
  const std::uint64_t w = word_.fetch_sub(use, std::memory_order_acq_rel) - use;  // [fd.use]
  if (w >= use || (w & closed) == 0) return;
  give_back();
  mark(gone, released);
}

void fd::close() noexcept {
  std::uint64_t w = word_.load(std::memory_order_relaxed);
  do {
    if ((w & closed) != 0) return;
    base::delay();
  } while (!word_.compare_exchange_weak(w, (w | closed) + use, std::memory_order_seq_cst, std::memory_order_relaxed));  // [fd.watch]
  // A forked child that exits destroys its copies of static objects: what belongs to the parent, too, is left alone.
  if (!sched::in_forked_child()) {
    if (!unlink_path.empty()) ::unlink(unlink_path.c_str());
    if (!owned_) unwatch();  // first: whose descriptor it is may close it as soon as its wait has failed
    sched::cancel_waits(*poll_);
  }
  end();
}

// `second` becomes true; if `first` was already, nobody has anything to do with this object any more.
void fd::mark(std::uint64_t second, std::uint64_t first) noexcept {
  base::delay();
  if ((word_.fetch_or(second, std::memory_order_acq_rel) & first) != 0) delete this;
}

void fd::release() noexcept {
  close();
  mark(released, gone);
}

int fd::expose() noexcept {
  exposed_.store(true, std::memory_order_relaxed);
  return number_;
}

// Nobody uses it any more.
void fd::give_back() noexcept {
  if (sched::in_forked_child()) {  // which has nothing of the runtime, and may have been born with its locks held
    if (watched_ != number_ && is_watched_.load(std::memory_order_relaxed)) ::close(watched_);
    if (owned_) ::close(number_);
    return;
  }
  if (!owned_ || exposed_.load(std::memory_order_relaxed) || watched_ != number_) unwatch();
  {
    const sched::finishing_quietly section;
    poll::put_descriptor(poll_);
  }
  if (!owned_) return;
  if (blocking) {
    const blocking_region region;  // some file systems write back what is left
    ::close(number_);
  } else {
    ::close(number_);
  }
}

int fd::check(direction which) const noexcept {
  const std::int64_t deadline = poll_->slots[which].deadline();
  if (deadline == poll::no_deadline || deadline > os::now_ns()) return 0;
  return ETIMEDOUT;
}

// The poller forgets it. More than once is fine.
void fd::unwatch() noexcept {
  if (!is_watched_.exchange(false, std::memory_order_seq_cst)) return;  // [fd.watch]
  poll::unwatch(watched_);
  if (watched_ != number_) ::close(watched_);
}

// The first wait. Whoever waits in the other direction meanwhile needs to know nothing: the poller reports what is ready
// already as it begins to watch.
int fd::watch() {
  int error = sched::watch_descriptor(number_, *poll_);
  if (error != EEXIST) return error;
  // The same number is watched for another object: the poller tells them apart by a duplicate.
  const int duplicate = ::fcntl(number_, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return errno;
  error = sched::watch_descriptor(duplicate, *poll_);
  if (error != 0) {
    ::close(duplicate);
  } else {
    watched_ = duplicate;
  }
  return error;
}

int fd::watch_first() {
  if (const int error = watch()) return error;
  base::delay();
  is_watched_.store(true, std::memory_order_seq_cst);
  if (!owned_ && (word_.load(std::memory_order_seq_cst) & closed) != 0) unwatch();  // [fd.watch]
  return 0;
}

int fd::wait(direction which, std::int64_t limit) {
  if (!watched_yet_.load(std::memory_order_relaxed) && !watched_yet_.exchange(true, std::memory_order_relaxed)) {
    if (const int error = watch_first()) {
      watched_yet_.store(false, std::memory_order_relaxed);
      sched::alert(*poll_, which == reading ? writing : reading);  // who relies on us, or is about to, tries it itself
      return error;
    }
  }
  return sched::wait_ready(*poll_, which, limit);
}

void fd::set_deadline(direction which, std::int64_t deadline_ns) noexcept { sched::set_deadline(*poll_, which, deadline_ns); }

operation::operation(fd* f, direction which) noexcept : fd_(f), which_(which), error_(0) {
  if (f == nullptr || !f->begin()) {
    error_ = f == nullptr ? EBADF : ECANCELED;
    fd_ = nullptr;
    return;
  }
  f->lock(which).lock_as(detail::wait_reason::io_wait);  // its turn comes when the one in front has what it waits for
  error_ = check();
}

operation::~operation() {
  if (fd_ == nullptr) return;
  fd_->lock(which_).unlock();
  fd_->end();
}

}  // namespace weft::io

namespace weft::detail {

void io_object::close() noexcept {
  if (fd_ != nullptr) fd_->close();
}

void io_object::release() noexcept {
  if (fd_ != nullptr) std::exchange(fd_, nullptr)->release();
}

bool io_object::is_open() const noexcept { return fd_ != nullptr && fd_->is_open(); }

int io_object::native_handle() const noexcept { return is_open() ? fd_->expose() : -1; }

void io_object::set_deadlines(std::int64_t ns, bool read, bool write) noexcept {
  const io::brief_use use(fd_);
  if (use.error() != 0) return;
  if (read) fd_->set_deadline(io::reading, ns);
  if (write) fd_->set_deadline(io::writing, ns);
}

}  // namespace weft::detail
