// An object that counts how many of its kind are alive.
#pragma once

#include <atomic>

namespace test {

class live {
 public:
  explicit live(std::atomic<int>& count) : count_(&count) { ++*count_; }
  live(const live& other) : count_(other.count_) { ++*count_; }
  live(live&& other) noexcept : count_(other.count_) { ++*count_; }
  live& operator=(const live&) = delete;
  ~live() { --*count_; }

 private:
  std::atomic<int>* count_;
};

}  // namespace test
