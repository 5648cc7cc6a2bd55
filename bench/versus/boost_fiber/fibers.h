// How the Boost.Fiber workloads start and await fibers.
#pragma once

#include <atomic>
#include <boost/fiber/all.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "../common/harness.h"

namespace bench {

namespace fibers = boost::fibers;

// The default stack of 128 KiB comes from mmap each time; one this small comes from malloc, which is several times as
// fast, and is ample for these workloads.
inline constexpr std::size_t stack_size = 16 * 1024;

template <class F>
fibers::fiber spawn_fiber(F&& f) {
  return fibers::fiber(fibers::launch::post, std::allocator_arg, fibers::fixedsize_stack(stack_size),
                       std::forward<F>(f));
}

template <class F>
void go(F&& f) {
  spawn_fiber(std::forward<F>(f)).detach();
}

// Boost.Fiber has no wait group. Only the last done() takes the lock.
class wait_group {
 public:
  explicit wait_group(std::int64_t count) : count_(count) {}

  void done() {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::lock_guard lock(mutex_);
    finished_ = true;
    all_done_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [this] { return finished_; });
  }

 private:
  std::atomic<std::int64_t> count_;
  fibers::mutex mutex_;
  fibers::condition_variable all_done_;
  bool finished_ = false;
};

}  // namespace bench
