// What the stress tests share: how long and with which random numbers they run, and who notices that nothing moves.
//
//   WEFT_STRESS_SECONDS=N   how long, in all
//   WEFT_SOAK=1             for long, unless the seconds are given
//   WEFT_STRESS_SEED=N      repeats the decisions (not the interleavings) of the run that printed this seed
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace test {

inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

inline std::chrono::seconds stress_duration(std::uint64_t usually = 3, std::uint64_t soak = 120) {
  const bool soaks = number_from_environment("WEFT_SOAK", 0) != 0;
  return std::chrono::seconds(number_from_environment("WEFT_STRESS_SECONDS", soaks ? soak : usually));
}

// The same in all of a run.
inline std::uint64_t stress_seed() {
  static const std::uint64_t value =
      number_from_environment("WEFT_STRESS_SEED", (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}());
  return value;
}

class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::chrono::microseconds microseconds(std::uint64_t n) { return std::chrono::microseconds(below(n)); }

 private:
  std::uint64_t state_;
};

// Counted up by whoever gets something done.
inline std::atomic<std::uint64_t> progress{0};

// When there is none for a minute, says what was going on, and aborts.
class watchdog {
 public:
  explicit watchdog(std::function<void()> say) : say_(std::move(say)), thread_([this] { watch(); }) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog() {
    {
      const std::lock_guard guard(lock_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

 private:
  void watch() {
    using clock = std::chrono::steady_clock;
    std::uint64_t last = progress;
    auto last_change = clock::now();
    std::unique_lock guard(lock_);
    while (!wake_.wait_for(guard, std::chrono::milliseconds(500), [this] { return stop_; })) {
      if (const std::uint64_t now = progress; now != last) {
        last = now;
        last_change = clock::now();
      } else if (clock::now() - last_change > std::chrono::seconds(60)) {
        say_();
        std::abort();
      }
    }
  }

  const std::function<void()> say_;
  std::mutex lock_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace test
