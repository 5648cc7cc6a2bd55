#include <weft/group.h>

#include <stdexcept>

#include <weft/future.h>

namespace weft {

group::~group() {
  if (std::uncaught_exceptions() > exceptions_outside_) source().request_stop();
  running_.join(this);
}

void group::set_limit(int n) {
  if (n == 0) throw std::invalid_argument("weft::group: with a limit of 0 go() would never return");
  if (!running_.is_zero()) throw std::logic_error("weft::group: set_limit() while goroutines of the group run");
  while (permits_.try_acquire()) {
  }
  limit_ = n;
  if (n > 0) permits_.release(n, n);
}

void group::begin() {
  if (limit_ > 0) permits_.acquire_until(detail::no_deadline);
  if (!running_.up(1)) {
    if (limit_ > 0) permits_.release(1, limit_);
    throw std::logic_error("weft::group: go() while others wait for an earlier round");
  }
}

// The permit first: after the count the group may be gone.
void group::done() noexcept {
  if (limit_ > 0) permits_.release(1, limit_);
  running_.down(1);
}

void group::wait() {
  running_.join(this);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool group::is_goroutine_exit() noexcept { return detail::handling_goroutine_exit(); }

void group::fail(std::exception_ptr e) noexcept {
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  error_ = std::move(e);  // [countdown.zero] publishes it
  source().request_stop();
}

std::stop_source& group::source() {
  call_once(source_made_, [this] { source_ = std::stop_source(); });
  return source_;
}

}  // namespace weft
