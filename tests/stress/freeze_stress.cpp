// run() ends while goroutines are in the middle of whatever they do. What they had begun comes to its end, so a plain thread that
// uses the same objects gets on: nobody took it out of a queue without waking it, and no place or lock inside of an object is kept
// by a goroutine that is frozen. WEFT_STRESS_SECONDS, WEFT_STRESS_SEED: support/stress.h.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "support/await.h"
#include "support/build.h"
#include "support/pipe.h"
#include "support/stress.h"

namespace {

using clock = std::chrono::steady_clock;
using test::progress;
using test::random_source;

// What goroutines do over and over until they freeze, and a plain thread before and after that. If the thread may have to wait for
// somebody, help() does what it waits for: it is called, by another plain thread, until the thread has got on.
struct scene {
  virtual ~scene() = default;
  virtual void act(random_source&) = 0;
  virtual void use(random_source&) = 0;
  virtual void help() {}
};

constexpr int actors = 6;

void wait_actively(std::chrono::microseconds d) {
  for (const auto end = clock::now() + d; clock::now() < end;) {
  }
}

void end_in_the_middle(scene& s, random_source& random, int procs) {
  std::atomic<bool> enough = false, over = false;
  std::atomic<std::uint64_t> turns = 0, uses = 0;
  std::thread outside([&, seed = random.next()] {
    random_source mine(seed);
    for (; !over; ++uses) s.use(mine);
  });
  weft::run(
      [&] {
        for (int i = 0; i < actors; ++i) {
          weft::go([&, seed = random.next()] {
            random_source mine(seed);
            for (; !enough; ++turns) s.act(mine);
          });
        }
        test::await([&] {
          s.help();
          return turns.load() > actors;
        });
        if (random.one_in(2)) {
          wait_actively(random.microseconds(200));
        } else {
          weft::sleep_for(random.microseconds(200));
        }
      },
      {.procs = procs});
  const std::uint64_t before = uses;
  test::await([&] {
    s.help();
    return uses.load() > before + 3;
  });
  over = true;
  // It may be waiting.
  std::atomic<bool> joined = false;
  std::thread helper([&] {
    while (!joined) {
      s.help();
      std::this_thread::yield();
    }
  });
  outside.join();
  joined = true;
  helper.join();
  ++progress;
  enough = true;
  weft::run(
      [&] {
        test::await([&] {
          s.help();
          return weft::runtime::num_goroutine() == 1;
        });
      },
      {.procs = procs});
  ++progress;
}

template <class T>
T some_value(random_source& random) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(40, static_cast<char>('a' + random.below(26)));  // on the heap
  } else {
    return static_cast<T>(random.next());
  }
}

template <class T>
struct channel : scene {
  explicit channel(std::size_t capacity) : ch(capacity) {}

  void act(random_source& random) override {
    T value = some_value<T>(random);
    switch (random.below(4)) {
      case 0: return ch.send(std::move(value));
      case 1: (void)ch.recv(); return;
      case 2: (void)ch.try_send(value); return;
      default: (void)ch.try_recv(value); return;
    }
  }
  void use(random_source& random) override { act(random); }
  void help() override {
    T value{};
    (void)ch.try_send(value);
    (void)ch.try_recv(value);
  }

  weft::chan<T> ch;
};

template <class T>
struct selects : scene {
  explicit selects(std::size_t capacity) : a(capacity), b(capacity) {}

  void act(random_source& random) override {
    T value = some_value<T>(random);
    switch (random.below(4)) {
      case 0: return a.send(std::move(value));
      case 1: return b.send(std::move(value));
      case 2: (void)weft::select(weft::on_recv(a), weft::on_send(b, std::move(value))); return;
      default: (void)weft::select(weft::on_recv(b), weft::on_recv(a)); return;
    }
  }
  void use(random_source& random) override { act(random); }
  void help() override {
    for (const auto& ch : {a, b}) {
      T value{};
      (void)ch.try_send(value);
      (void)ch.try_recv(value);
    }
  }

  weft::chan<T> a, b;
};

// Channels that are closed while others wait on them.
struct closing : scene {
  void act(random_source& random) override {
    weft::chan<std::string> ch = current();
    if (random.one_in(3)) {
      close_and_replace(ch);
    } else {
      (void)ch.recv();
    }
  }
  void use(random_source&) override { (void)current().recv(); }
  void help() override { close_and_replace(current()); }

  weft::chan<std::string> current() {
    const std::lock_guard guard(lock);
    return ch_;
  }
  // Only by who was the first to replace it.
  void close_and_replace(const weft::chan<std::string>& old) {
    {
      const std::lock_guard guard(lock);
      if (!(ch_ == old)) return;
      ch_ = weft::chan<std::string>(2);
    }
    old.close();
  }

  std::mutex lock;  // nobody calls weft with it
  weft::chan<std::string> ch_{2};
};

struct permits : scene {
  void act(random_source& random) override { random.one_in(2) ? free.release() : free.acquire(); }
  void use(random_source&) override { free.acquire(); }
  void help() override { free.release(); }

  weft::counting_semaphore<> free{0};
};

struct notices : scene {
  void act(random_source& random) override { random.one_in(2) ? changed.notify_one() : changed.notify_all(); }
  void use(random_source&) override {
    std::unique_lock guard(lock);
    changed.wait(guard);
  }
  void help() override { changed.notify_all(); }

  weft::mutex lock;  // the thread's alone
  weft::condition_variable changed;
};

struct tickets : scene {
  void act(random_source&) override {
    help();
    weft::checkpoint();
  }
  void use(random_source&) override {
    all.add(1);
    given = true;
    all.wait();
  }
  void help() override {
    if (given.exchange(false)) all.done();
  }

  weft::wait_group all;
  std::atomic<bool> given = false;
};

struct contexts : scene {
  void act(random_source& random) override {
    auto [child, cancel_child] = weft::with_cancel(root.first);
    auto [grandchild, cancel_grandchild] = weft::with_cancel(child);
    if (random.one_in(2)) cancel_grandchild();
    cancel_child();
    EXPECT_TRUE(grandchild.error());
    (void)grandchild.done().recv();
    if (random.one_in(1000)) root.second();
  }
  void use(random_source& random) override {
    act(random);
    const bool stopped = root.first.token().stop_requested();
    EXPECT_TRUE(!stopped || root.first.error());
  }

  std::pair<weft::context, weft::cancel_function> root = weft::with_cancel(weft::background());
};

struct descriptors : scene {
  void act(random_source&) override { help(); }
  void use(random_source&) override {
    const test::nonblocking_pipe pipe;
    auto p = std::make_shared<weft::pollable>(pipe.in);
    set(p);
    try {
      p->wait_readable();
      ADD_FAILURE() << "nobody has written";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
    set(nullptr);
  }
  void help() override {
    std::shared_ptr<weft::pollable> p;
    {
      const std::lock_guard guard(lock);
      p = current;
    }
    if (p != nullptr) p->close();
    weft::checkpoint();
  }
  void set(std::shared_ptr<weft::pollable> p) {
    const std::lock_guard guard(lock);
    current.swap(p);
  }

  std::mutex lock;  // nobody calls weft with it
  std::shared_ptr<weft::pollable> current;
};

struct pools : scene {
  void act(random_source&) override { spare.put(spare.get()); }
  void use(random_source& random) override { act(random); }

  weft::pool<std::string> spare{[] { return std::make_unique<std::string>("x"); }};
};

// The thread holds it for reading all the while, so that nobody else may do more; attempts that fail leave nothing behind.
struct attempts : scene {
  attempts() { lock.lock_shared(); }
  ~attempts() override { lock.unlock_shared(); }

  void act(random_source& random) override {
    if (random.one_in(2)) {
      if (lock.try_lock_shared()) lock.unlock_shared();
    } else {
      EXPECT_FALSE(lock.try_lock());
      weft::checkpoint();
    }
  }
  void use(random_source&) override {
    test::await([&] { return lock.try_lock_shared(); });
    lock.unlock_shared();
  }

  weft::shared_mutex lock;
};

const char* scene_name = "";

void play(const char* name, const std::function<std::unique_ptr<scene>()>& make) {
  constexpr int all_procs[] = {1, 2, 3, 8};
  const std::uint64_t seed = test::stress_seed();
  std::printf("WEFT_STRESS_SEED=%" PRIu64 "\n", seed);
  std::fflush(stdout);
  scene_name = name;
  const test::watchdog watching([] {
    std::fprintf(stderr, "freeze_stress, %s: a thread got stuck after run()\n", scene_name);
    weft::runtime::dump_goroutines(std::cerr);
  });
  random_source random(seed);
  const auto end = clock::now() + test::stress_duration(1, 30);
  for (std::size_t rounds = 0; !testing::Test::HasFailure() && (rounds < 4 || clock::now() < end); ++rounds) {
    SCOPED_TRACE(rounds);
    const std::unique_ptr<scene> s = make();
    end_in_the_middle(*s, random, all_procs[rounds % 4]);
  }
}

template <class Scene, class... Args>
void play(const char* name, Args... args) {
  play(name, [=] { return std::make_unique<Scene>(args...); });
}

TEST(what_was_begun_ends_though_run_does, channels_of_objects) { play<channel<std::string>>("objects, 3", 3); }
TEST(what_was_begun_ends_though_run_does, channels_of_one_object) { play<channel<std::string>>("objects, 1", 1); }
TEST(what_was_begun_ends_though_run_does, unbuffered_channels_of_objects) { play<channel<std::string>>("objects, 0", 0); }
TEST(what_was_begun_ends_though_run_does, channels_of_bits) { play<channel<int>>("bits, 2", 2); }
TEST(what_was_begun_ends_though_run_does, unbuffered_channels_of_bits) { play<channel<int>>("bits, 0", 0); }
TEST(what_was_begun_ends_though_run_does, selects) { play<selects<int>>("select", 0); }
TEST(what_was_begun_ends_though_run_does, selects_of_objects) { play<selects<std::string>>("select, objects", 1); }
TEST(what_was_begun_ends_though_run_does, closing) { play<closing>("closing"); }
TEST(what_was_begun_ends_though_run_does, semaphores) { play<permits>("semaphores"); }
TEST(what_was_begun_ends_though_run_does, condition_variables) { play<notices>("condition variables"); }
TEST(what_was_begun_ends_though_run_does, wait_groups) { play<tickets>("wait groups"); }
TEST(what_was_begun_ends_though_run_does, contexts) { play<contexts>("contexts"); }
TEST(what_was_begun_ends_though_run_does, descriptors) { play<descriptors>("descriptors"); }
TEST(what_was_begun_ends_though_run_does, shared_mutexes) { play<attempts>("shared mutexes"); }
TEST(what_was_begun_ends_though_run_does, pools) { play<pools>("pools"); }

}  // namespace
