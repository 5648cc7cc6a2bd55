// One wait that is ended by a waker or by a deadline, in every order of what waiter, waker and timer do.
//
// The parker is compiled into this program, on a runtime of a few lines: parking, readying and timers are below. The
// parker calls base::delay() between its steps; here that is where one actor gives way to the next. Each actor is a
// thread, and one of them runs at a time. In every order the wait must end, for the right reason; the waiter must be
// readied if and only if it sleeps; and nobody may touch the parker once the waiter has done with it.
#ifndef WEFT_DEBUG_DELAYS
#define WEFT_DEBUG_DELAYS 1
#endif
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arch/sanitizer.h"

// What the parker does while it spins for a waker.
int yield_to_the_waker();
#define sched_yield yield_to_the_waker
#include "sched/parker.cpp"
#undef sched_yield

namespace {

using weft::gmp::status;
using weft::sched::parker;
using weft::timers::timer_node;

// ---- actors in every order ------------------------------------------------------------------------------------------

class explorer {
 public:
  using script = std::function<void()>;
  using condition = std::function<bool()>;

  explicit explorer(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) actors_.push_back(std::make_unique<actor>(*this));
  }
  explorer(const explorer&) = delete;
  explorer& operator=(const explorer&) = delete;
  ~explorer() {
    for (auto& a : actors_) {
      a->quit = true;
      a->turn.release();
      a->thread.join();
    }
  }

  // Calls `prepare`, which returns what each actor does, and then `check`, for each order. Returns how many there were.
  template <class Prepare, class Check>
  long run(Prepare prepare, Check check) {
    path_.clear();
    long orders = 0;
    do {
      run_once(prepare());
      check();
      ++orders;
    } while (!testing::Test::HasFailure() && next_path());
    return orders;
  }

  std::string path() const {
    std::string text;
    for (const choice& c : path_) text += std::to_string(c.taken);
    return text;
  }

  // In an actor: others may come now, and this one goes on when `ready` is true. Elsewhere: nothing.
  static void give_way(condition ready = nullptr) {
    actor* const self = self_;
    if (self == nullptr) return;
    self->ready = std::move(ready);
    self->owner.home_.release();
    self->turn.acquire();
  }

  // How many pieces have been run.
  long steps() const { return steps_; }

 private:
  struct actor {
    explicit actor(explorer& o) : owner(o), thread([this] { loop(); }) {}

    void loop() {
      self_ = this;
      for (turn.acquire(); !quit; turn.acquire()) {
        body();
        done = true;
        owner.home_.release();
      }
    }
    bool can_run() const { return !done && (!ready || ready()); }

    explorer& owner;
    std::binary_semaphore turn{0};
    script body;
    condition ready;
    bool done = true;
    bool quit = false;
    std::thread thread;
  };
  struct choice {
    std::size_t taken;
    std::size_t options;
  };

  void run_once(std::vector<script> scripts) {
    for (std::size_t i = 0; i < scripts.size(); ++i) {
      actors_[i]->body = std::move(scripts[i]);
      actors_[i]->ready = nullptr;
      actors_[i]->done = false;
    }
    for (std::size_t step = 0;; ++step, ++steps_) {
      std::vector<actor*> able;
      for (auto& a : actors_) {
        if (a->can_run()) able.push_back(a.get());
      }
      if (able.empty()) break;
      if (step == path_.size()) path_.push_back({0, able.size()});
      able[path_[step].taken]->turn.release();
      home_.acquire();
    }
    const bool all_done = std::all_of(actors_.begin(), actors_.end(), [](const auto& a) { return a->done; });
    if (!all_done) {
      std::fprintf(stderr, "nobody can go on after %s\n", path().c_str());
      std::abort();  // the threads could not be joined
    }
  }

  // As far back as needed, another choice; all behind it anew.
  bool next_path() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  static inline thread_local actor* self_ = nullptr;

  std::binary_semaphore home_{0};
  std::vector<std::unique_ptr<actor>> actors_;
  std::vector<choice> path_;
  long steps_ = 0;
};

// ---- a runtime of a few lines ---------------------------------------------------------------------------------------

weft::timers::callback function_of(const timer_node& node);
void* argument_of(const timer_node& node);
// (An explicit instantiation may name private members.)
template <const weft::timers::callback timer_node::*Function, void* const timer_node::*Argument>
struct door {
  friend weft::timers::callback function_of(const timer_node& node) { return node.*Function; }
  friend void* argument_of(const timer_node& node) { return node.*Argument; }
};
template struct door<&timer_node::fn_, &timer_node::arg_>;

struct model {
  explicit model(explorer& e) : explore(e) {}

  explorer& explore;
  weft::gmp::goroutine waiter;
  bool sleeps = false;  // off its stack, until it is readied
  int readied = 0;

  const timer_node* timer = nullptr;
  bool timer_over = false;  // stopped, or fired
  bool firing = false;
  bool fired = false;
};
model* now = nullptr;

}  // namespace

int yield_to_the_waker() {
  const long before = now->explore.steps();
  explorer::give_way([before] { return now->explore.steps() > before + 1; });  // somebody else had a turn
  return 0;
}

namespace weft::base {
void delay() noexcept { explorer::give_way(); }
}  // namespace weft::base

namespace weft::detail {

goroutine* self() noexcept { return &now->waiter; }

void park(commit_fn commit, void* arg, wait_reason) noexcept {
  now->sleeps = true;
  if (!commit(&now->waiter, arg)) {
    now->sleeps = false;
    return;
  }
  explorer::give_way([] { return !now->sleeps; });
}

void ready(goroutine* g) noexcept {
  EXPECT_EQ(g, &now->waiter);
  EXPECT_TRUE(now->sleeps) << "readied, though it does not sleep";
  now->sleeps = false;
  ++now->readied;
}

}  // namespace weft::detail

namespace weft::sched {

// Only an M could need these.
machine* regain_processor(machine*) noexcept { std::abort(); }
machine* attend(machine*) noexcept { std::abort(); }
bool step_outside(machine*) noexcept { std::abort(); }
bool step_inside(machine*) noexcept { std::abort(); }

void start_fresh_timer(timers::timer_node& node, std::int64_t) noexcept {
  now->timer = &node;
}

bool stop_timer_sync(timers::timer_node&) noexcept {
  explorer::give_way([] { return !now->firing; });
  return !std::exchange(now->timer_over, true);
}

}  // namespace weft::sched

namespace {

// ---- the wait -------------------------------------------------------------------------------------------------------

// A parker in memory that nobody may use once it is gone.
class place {
 public:
  parker* make() { return new (bytes_) parker; }
  void destroy() {
    reinterpret_cast<parker*>(bytes_)->~parker();
    std::memset(bytes_, 0x5a, sizeof bytes_);
#ifdef WEFT_ASAN
    __asan_poison_memory_region(bytes_, sizeof bytes_);
#endif
  }
  parker* get() { return reinterpret_cast<parker*>(bytes_); }

  bool untouched() const {
#ifdef WEFT_ASAN
    __asan_unpoison_memory_region(bytes_, sizeof bytes_);
#endif
    return std::all_of(std::begin(bytes_), std::end(bytes_), [](unsigned char b) { return b == 0x5a; });
  }

 private:
  alignas(parker) unsigned char bytes_[sizeof(parker)];
};

// As in sync/event.cpp, in short: who waits is in a list, and the waker takes it from there.
struct scene : model {
  using model::model;

  place where;
  bool linked = false;
  bool gone = false;
  bool woke = false;       // what the waiter was told
  bool wake_sent = false;  // the waker found it in time

  void wait() {
    parker* const p = announce();
    p->park(weft::detail::wait_reason::future);
    woke = true;
    leave();
  }

  void wait_until() {
    parker* const p = announce();
    woke = p->park_until(weft::detail::wait_reason::future, 1);
    if (!woke) {
      explorer::give_way();
      if (!std::exchange(linked, false)) p->await_waker();
    }
    leave();
  }

  void wake() {
    explorer::give_way([this] { return linked || gone; });
    if (!std::exchange(linked, false)) return;
    wake_sent = true;
    explorer::give_way();
    where.get()->wake();
  }

  void fire() {
    explorer::give_way([this] { return timer != nullptr || gone; });
    if (std::exchange(timer_over, true)) return;
    firing = fired = true;
    EXPECT_FALSE(gone) << "the timer fires though the waiter has gone";
    function_of (*timer)(argument_of(*timer), 0, 0);
    firing = false;
  }

  parker* announce() {
    parker* const p = where.make();
    linked = true;
    return p;
  }
  void leave() {
    explorer::give_way();
    where.destroy();
    gone = true;
  }

  void check() {
    EXPECT_TRUE(gone);
    EXPECT_FALSE(sleeps);
    EXPECT_LE(readied, 1);
    EXPECT_TRUE(where.untouched()) << "somebody used the parker after the waiter had gone";
    if (woke) {
      EXPECT_TRUE(wake_sent) << "woken by nobody";
    } else {
      EXPECT_TRUE(fired) << "the deadline has not come";
    }
  }
};

// (Where two steps of an actor cannot be told apart by the others, there is no give_way() between them: each doubles
// the number of orders.)

// Every order of these parts of a scene.
class every_order {
 public:
  explicit every_order(std::vector<void (scene::*)()> parts) : explore_(parts.size()) {
    std::unique_ptr<scene> current;
    orders = explore_.run(
        [&] {
          current = std::make_unique<scene>(explore_);
          now = current.get();
          std::vector<explorer::script> scripts;
          for (const auto part : parts) scripts.push_back([s = current.get(), part] { (s->*part)(); });
          return scripts;
        },
        [&] {
          current->check();
          woken += current->woke ? 1 : 0;
          expired += current->woke ? 0 : 1;
          slept += current->readied;
        });
    if (testing::Test::HasFailure()) ADD_FAILURE() << "in order " << explore_.path();
  }

  long orders = 0;
  long woken = 0;
  long expired = 0;
  long slept = 0;  // and was readied

 private:
  explorer explore_;
};

TEST(every_order_of_a_waiter_and_a_waker, ends_the_wait) {
  const every_order all({&scene::wait, &scene::wake});
  EXPECT_EQ(all.woken, all.orders);
  EXPECT_GT(all.slept, 0) << "it never slept";
  EXPECT_LT(all.slept, all.orders) << "it was never woken before it slept";
}

TEST(every_order_of_a_waiter_with_a_deadline_and_a_waker_and_a_timer, ends_the_wait_for_the_right_reason) {
  const every_order all({&scene::wait_until, &scene::wake, &scene::fire});
  EXPECT_GT(all.woken, 0);
  EXPECT_GT(all.expired, 0);
  EXPECT_GT(all.slept, 0);
  EXPECT_LT(all.slept, all.orders);
}

TEST(every_order_of_a_waiter_with_a_deadline_and_a_timer, ends_the_wait_at_the_deadline) {
  const every_order all({&scene::wait_until, &scene::fire});
  EXPECT_EQ(all.expired, all.orders);
}

}  // namespace
