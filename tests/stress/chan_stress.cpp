// 8 producers and 8 consumers, goroutines and plain threads, on a few channels, with everything a channel can do chosen
// at random: send, receive, the ones that only try, selects over several channels with timeouts, stop requests and
// defaults; and channels that are closed in the middle of it. On 1, 2 and 8 Ps, with bits and with objects, for as long
// as the environment says:
//
//   WEFT_STRESS_SECONDS=N   in all (3 if not set)
//   WEFT_SOAK=1             120 seconds
//   WEFT_STRESS_SEED=N      repeats the decisions (not the interleavings) of the run that printed this seed
//
// The account at the end of each round: every value whose send succeeded was received exactly once, every other one not
// at all, and no object is left. If nothing moves for a minute, the watchdog says so and aborts.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/build.h"
#include "support/chan_places.h"
#include "support/stress.h"

namespace {

using clock = std::chrono::steady_clock;
using test::progress;
using test::random_source;

// What is going on, for the watchdog.
class now_playing {
 public:
  void set(std::string what) {
    const std::lock_guard guard(lock_);
    what_ = std::move(what);
  }
  void say() {
    const std::lock_guard guard(lock_);
    std::fprintf(stderr, "nothing has moved for a minute: %s\n", what_.c_str());
  }

 private:
  std::mutex lock_;
  std::string what_;
};

// ---- what is sent ----

class object {
 public:
  explicit object(std::uint64_t n) : number_(std::make_unique<std::uint64_t>(n)) { ++alive; }
  object(object&& other) noexcept : number_(std::move(other.number_)) { ++alive; }
  object& operator=(object&& other) noexcept {
    number_ = std::move(other.number_);
    return *this;
  }
  ~object() { --alive; }
  std::uint64_t number() const { return *number_; }
  bool is_whole() const { return number_ != nullptr; }

  static inline std::atomic<int> alive{0};

 private:
  std::unique_ptr<std::uint64_t> number_;
};

std::uint64_t number(std::uint64_t v) { return v; }
std::uint64_t number(const object& v) { return v.number(); }
bool is_whole(std::uint64_t) { return true; }
bool is_whole(const object& v) { return v.is_whole(); }

// ---- one round ----

constexpr std::size_t sides = 8;
constexpr std::size_t channels = 4;
constexpr std::size_t each = test::scaled(2000, 400, 300);

template <class T>
class round_of {
 public:
  round_of(std::uint64_t seed) : random_(seed), sent_(sides * each), received_(sides * each) {
    for (std::size_t c = 0; c < channels; ++c) channels_.emplace_back(random_.below(2) == 0 ? 0 : random_.below(6));
  }

  // On the main goroutine.
  void play() {
    std::vector<std::thread> threads;
    const auto start = [&](auto f) {
      ++left_;
      auto whole = [this, f, seed = random_.next()] {
        random_source mine(seed);
        f(mine);
        --left_;
      };
      if (random_.one_in(3)) {
        threads.emplace_back(whole);
      } else {
        weft::go(whole);
      }
    };
    for (std::size_t i = 0; i < sides; ++i) {
      start([this, i](random_source& r) { produce(i, r); });
      start([this, i](random_source& r) { i < channels ? drain(i, r) : consume(r); });
    }
    // Some channels are closed by somebody else than who knows that all is sent.
    start([this](random_source& r) {
      const std::size_t some = r.below(channels);
      for (std::size_t c = 0; c < some; ++c) {
        const std::uint64_t until = r.below(sides * each);
        while (done_ < until && producing_ != 0) pause(r);
        close(c);
      }
      if (r.one_in(2)) stop_.request_stop();
      while (producing_ != 0) pause(r);
      stop_.request_stop();
      for (std::size_t c = 0; c < channels; ++c) close(c);
    });
    test::await([&] { return left_ == 0; });
    for (std::thread& t : threads) t.join();
  }

  void check() const {
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      ASSERT_EQ(received_[i], sent_[i]) << "value " << i;
      ASSERT_LE(sent_[i], 1);
    }
    ASSERT_EQ(errors_, 0);
  }

 private:
  static void pause(random_source& r) {
    if (r.one_in(50)) {
      weft::sleep_for(std::chrono::microseconds(r.below(200)));
    } else {
      weft::yield();
    }
  }

  void close(std::size_t c) {
    try {
      channels_[c].close();
    } catch (const weft::channel_error&) {
    }
  }

  weft::chan<T>& any(random_source& r) { return channels_[r.below(channels)]; }

  // Whether it was sent. If not, the value must be whole.
  bool send(weft::chan<T>& ch, T& value, random_source& r) {
    switch (r.below(6)) {
      case 0:
        if constexpr (std::is_copy_constructible_v<T>) {
          ch.send(value);
        } else {
          T mine(std::move(value));
          ch.send(std::move(mine));
        }
        return true;
      case 1:
        return ch.try_send(value);
      case 2:
        return weft::select(weft::on_send(ch, std::move(value)), weft::on_default()) == 0;
      case 3:
        return weft::select(weft::on_send(ch, std::move(value)),
                            weft::on_timeout(std::chrono::microseconds(r.below(100)))) == 0;
      case 4:
        return weft::select(weft::on_stop(stop_.get_token()), weft::on_send(ch, std::move(value)),
                            weft::on_timeout(std::chrono::microseconds(r.below(100)))) == 1;
      default:
        return weft::select(weft::on_send(ch, std::move(value)),
                            weft::on_recv(any(r), [this](std::optional<T> v) { take(v); }),
                            weft::on_timeout(std::chrono::milliseconds(1))) == 0;
    }
  }

  void produce(std::size_t who, random_source& r) {
    for (std::size_t i = 0; i < each; ++i, ++done_, ++progress) {
      const std::size_t id = who * each + i;
      T value(id);
      for (int tries = 0; tries < 4; ++tries) {
        bool was_sent = false;
        try {
          was_sent = send(any(r), value, r);
        } catch (const weft::channel_error&) {
        }
        if (was_sent) {
          ++sent_[id];
          break;
        }
        if (!is_whole(value)) break;  // by the plain send that a close made fail
        if (number(value) != id) ++errors_;
        if (r.one_in(4)) pause(r);
      }
    }
    --producing_;
  }

  void take(std::optional<T>& v) {
    if (v) ++received_[number(*v)];
    ++progress;
  }

  // Each channel has one consumer that stays with it, so that a plain send always ends: all others may be waiting
  // elsewhere.
  void drain(std::size_t c, random_source& r) {
    const weft::chan<T>& ch = channels_[c];
    for (T& v : ch) {
      ++received_[number(v)];
      ++progress;
      if (r.one_in(4)) {
        T other(0);
        if (ch.try_recv(other) == weft::recv_status::ok) ++received_[number(other)];
      }
      if (r.one_in(32)) pause(r);
    }
  }

  // Until every channel is closed and drained.
  void consume(random_source& r) {
    std::vector<weft::chan<T>> open = channels_;
    while (!open.empty()) {
      const std::size_t c = r.below(open.size());
      if (receive(open, c, r)) open.erase(open.begin() + static_cast<std::ptrdiff_t>(c));
      if (r.one_in(32)) pause(r);
    }
  }

  // True: channel c of the open ones is drained.
  bool receive(const std::vector<weft::chan<T>>& open, std::size_t c, random_source& r) {
    const weft::chan<T>& ch = open[c];
    bool drained = false;
    const auto keep = [this](std::optional<T> v) { take(v); };
    const auto look = [&](std::optional<T> v) {
      drained = !v;
      take(v);
    };
    switch (r.below(6)) {
      case 0: {
        if (!r.one_in(8)) return false;  // may wait for long
        std::optional<T> v = ch.recv();
        take(v);
        return !v;
      }
      case 1: {
        T v(0);
        const weft::recv_status s = ch.try_recv(v);
        if (s == weft::recv_status::ok) ++received_[number(v)];
        return s == weft::recv_status::closed;
      }
      case 2:
        weft::select(weft::on_recv(ch, look), weft::on_default());
        return drained;
      case 3:
        weft::select(weft::on_timeout(std::chrono::microseconds(r.below(200))), weft::on_recv(ch, look));
        return drained;
      case 4:
        weft::select(weft::on_recv(ch, look), weft::on_recv(open[r.below(open.size())], keep), weft::on_recv(ch, look),
                     weft::on_stop(stop_.get_token()));
        return drained;
      default: {
        weft::selector all;
        for (std::size_t i = 0; i < open.size(); ++i) {
          if (i == c) {
            all.add(weft::on_recv(open[i], look));
          } else {
            all.add(weft::on_recv(open[i], keep));
          }
        }
        all.add(weft::on_timeout(std::chrono::microseconds(100 + r.below(1000))));
        all.wait();
        return drained;
      }
    }
  }

  random_source random_;
  std::vector<weft::chan<T>> channels_;
  std::vector<std::atomic<int>> sent_, received_;
  std::stop_source stop_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<int> producing_{sides};
  std::atomic<int> left_{0};
  std::atomic<int> errors_{0};
};

template <class T>
void play(std::uint64_t seed, int procs) {
  round_of<T> round(seed);
  weft::run([&] { round.play(); }, {.procs = procs});
  round.check();
}

TEST(chan_stress, every_value_is_accounted_for_exactly_once) {
  const std::uint64_t seed = test::stress_seed();
  std::printf("WEFT_STRESS_SEED=%" PRIu64 "\n", seed);
  std::fflush(stdout);
  random_source random(seed);
  now_playing playing;
  const test::watchdog dog([&] { playing.say(); });
  const auto end = clock::now() + test::stress_duration();
  int rounds = 0;
  do {
    for (const int procs : {1, 2, 8}) {
      const std::uint64_t round_seed = random.next();
      const bool objects = random.one_in(2);
      playing.set("round " + std::to_string(rounds) + ", procs " + std::to_string(procs) +
                      (objects ? ", objects" : ", bits"));
      objects ? play<object>(round_seed, procs) : play<std::uint64_t>(round_seed, procs);
      ++rounds;
      ASSERT_FALSE(HasFailure()) << "round " << rounds << ", seed " << round_seed << ", procs " << procs;
      ASSERT_EQ(object::alive, 0);
    }
  } while (clock::now() < end);
  std::printf("%d rounds, %" PRIu64 " steps\n", rounds, progress.load());
}

}  // namespace
