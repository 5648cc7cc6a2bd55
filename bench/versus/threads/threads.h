// What the workloads with plain threads share.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../common/harness.h"

namespace bench {

// This thread, and those that it starts from now on.
void confine_to(int cpus);

bool is_network(const std::string& workload);

template <class F>
void go(F&& f) {
  std::thread(std::forward<F>(f)).detach();
}

class wait_group {
 public:
  explicit wait_group(std::uint64_t count) : count_(count) {}

  // The last one notifies under the lock: the waiter destroys this as soon as it has it.
  void done() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) all_done_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::uint64_t count_;
};

// The textbook queue. Its least capacity is 1, which is as near as it comes to an unbuffered channel.
template <class T>
class channel {
 public:
  explicit channel(std::size_t capacity = 1) : capacity_(capacity) {}

  void send(T value) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return items_.size() < capacity_; });
    items_.push_back(std::move(value));
    lock.unlock();
    filled_.notify_one();
  }

  // Nothing: closed and empty.
  std::optional<T> recv() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !items_.empty() || closed_; });
    if (items_.empty()) return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    room_.notify_one();
    return value;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable filled_;
  std::deque<T> items_;
  const std::size_t capacity_;
  bool closed_ = false;
};

}  // namespace bench
