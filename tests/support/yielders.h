// Goroutines that do something and yield, again and again, so that a P always has others to choose from.
#pragma once

#include <weft/weft.h>

#include <atomic>
#include <functional>

#include "support/await.h"

namespace test {

class yielders {
 public:
  // Each calls between(its number) before it yields, if there is one.
  explicit yielders(int count, std::function<void(int)> between = nullptr) : count_(count), between_(std::move(between)) {
    for (int i = 0; i < count; ++i) {
      weft::go([this, i] {
        ++running_;
        while (!stop_) {
          if (between_) between_(i);
          weft::yield();
        }
        --running_;
      });
    }
    test::await([this] { return running_ == count_; });
  }
  yielders(const yielders&) = delete;
  yielders& operator=(const yielders&) = delete;
  ~yielders() {
    stop_ = true;
    test::await([this] { return running_ == 0; });
  }

 private:
  const int count_;
  const std::function<void(int)> between_;
  std::atomic<bool> stop_{false};
  std::atomic<int> running_{0};
};

}  // namespace test
