// A P's ring and its thieves, in every order of what they do.
//
// Three looks at it, from coarse to fine:
//   - whole operations, in every order, against a plain list;
//   - operations that are interrupted in their windows (between reading or writing slots and moving an index), in every
//     order of the pieces. The queue calls base::delay() there; in this program delay() is where one actor gives way to
//     the next. Actors run on stacks of their own, on one thread;
//   - threads, more than there are cores, for what an order of pieces cannot show.
// In each of them every item must turn up exactly once.
#ifndef WEFT_DEBUG_DELAYS
#define WEFT_DEBUG_DELAYS 1
#endif
#include "gmp/run_queue.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arch/context.h"
#include "arch/sanitizer.h"
#include "base/random.h"
#include "support/build.h"

namespace {

struct item {
  std::atomic<int> seen{0};
};

template <std::uint32_t Capacity>
using ring_of = weft::gmp::run_queue<item, Capacity>;
using ring = ring_of<4>;

// Lets a ring begin where its 32-bit indices are about to wrap. (An explicit instantiation may name private members.)
void begin_at(ring& q, std::uint32_t index);
template <std::atomic<std::uint64_t> ring::*Head, std::atomic<std::uint32_t> ring::*Tail>
struct door {
  friend void begin_at(ring& q, std::uint32_t index) {
    (q.*Head).store(index, std::memory_order_relaxed);
    (q.*Tail).store(index, std::memory_order_relaxed);
  }
};
template struct door<&ring::head_, &ring::tail_>;

constexpr std::uint32_t about_to_wrap = std::numeric_limits<std::uint32_t>::max() - 2;

// ---- whole operations -----------------------------------------------------------------------------------------------

enum class op { push, pop, take_back, take_half, first_thief, second_thief };
constexpr op every_op[] = {op::push, op::pop, op::take_back, op::take_half, op::first_thief, op::second_thief};

// A ring and the list that says what it must hold, oldest first.
struct checked_ring {
  ring actual;
  std::deque<item*> expected;

  void push(item* i) {
    const bool fits = expected.size() < ring::capacity;
    ASSERT_EQ(actual.push(i), fits);
    if (fits) expected.push_back(i);
  }

  item* pop() {
    item* const found = actual.pop();
    item* const wanted = expected.empty() ? nullptr : expected.front();
    EXPECT_EQ(found, wanted);
    if (wanted != nullptr) expected.pop_front();
    return found;
  }

  void take_back() {
    if (expected.empty()) {
      ASSERT_FALSE(actual.take_back());
      return;
    }
    ASSERT_EQ(actual.peek_last(), expected.back());
    ASSERT_TRUE(actual.take_back());
    expected.pop_back();
  }

  void take_half() {
    item* out[ring::capacity];
    const std::uint32_t n = expected.size() == ring::capacity ? ring::capacity / 2 : 0;
    ASSERT_EQ(actual.take_half(out), n);
    for (std::uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(out[i], expected.front());
      expected.pop_front();
    }
  }

  void grab_for(checked_ring& thief) {
    std::uint32_t moved = 0;
    item* const found = actual.grab_half(thief.actual, moved);
    const std::size_t n = expected.size() - expected.size() / 2;
    ASSERT_EQ(moved, n);
    item* last = nullptr;
    for (std::size_t i = 0; i < n; ++i) {
      last = expected.front();
      expected.pop_front();
      if (i + 1 < n) thief.expected.push_back(last);
    }
    ASSERT_EQ(found, last);
  }

  void check_size() const { ASSERT_EQ(actual.size(), expected.size()); }
};

struct sequence_of_operations {
  checked_ring owner;
  checked_ring thieves[2];
  item items[16];
  int pushed = 0;

  explicit sequence_of_operations(std::uint32_t start) {
    begin_at(owner.actual, start);
    begin_at(thieves[0].actual, start);
    begin_at(thieves[1].actual, start + 1);
  }

  void act(op what) {
    switch (what) {
      case op::push:
        return owner.push(&items[pushed++]);
      case op::pop:
        return static_cast<void>(owner.pop());
      case op::take_back:
        return owner.take_back();
      case op::take_half:
        return owner.take_half();
      case op::first_thief:
        return steal(0);
      case op::second_thief:
        return steal(1);
    }
  }

  // A thief whose ring is not empty runs what it has; the others may steal from it meanwhile.
  void steal(int who) {
    checked_ring& self = thieves[who];
    if (!self.expected.empty()) {
      self.pop();
    } else {
      (owner.expected.empty() ? thieves[1 - who] : owner).grab_for(self);
    }
  }

  void drain() {
    for (checked_ring* r : {&owner, &thieves[0], &thieves[1]}) {
      r->check_size();
      while (r->pop() != nullptr) {
      }
      r->check_size();
    }
  }
};

TEST(every_order_of_operations, leaves_the_rings_as_lists_would_be) {
  constexpr int length = test::under_sanitizer ? 6 : 7;
  int orders = 1;
  for (int i = 0; i < length; ++i) orders *= static_cast<int>(std::size(every_op));
  for (const std::uint32_t start : {std::uint32_t{0}, about_to_wrap}) {
    for (int order = 0; order < orders; ++order) {
      sequence_of_operations s(start);
      for (int i = 0, rest = order; i < length; ++i, rest /= static_cast<int>(std::size(every_op))) {
        s.act(every_op[rest % static_cast<int>(std::size(every_op))]);
      }
      s.drain();
      if (testing::Test::HasFailure()) FAIL() << "in order " << order << " from index " << start;
    }
  }
}

// ---- operations in pieces -------------------------------------------------------------------------------------------

// Runs actors in every order of their pieces: give_way() ends a piece.
class explorer {
 private:
  struct actor;

 public:
  using script = std::function<void()>;

  explorer() {
    pthread_attr_t attributes;
    void* low = nullptr;
    std::size_t size = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
      ::pthread_attr_getstack(&attributes, &low, &size);
      ::pthread_attr_destroy(&attributes);
    }
    weft::arch::adopt_thread_fiber(home_fiber_, low, size);
  }
  explorer(const explorer&) = delete;
  explorer& operator=(const explorer&) = delete;
  ~explorer() {
    for (auto& a : actors_) weft::arch::destroy_fiber(a->fiber);
  }

  // Calls `prepare` (which returns what each actor does) and then `check`, for each order. Returns how many there were.
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

  // In an actor: somebody else's turn, maybe. Elsewhere: nothing.
  static void give_way() {
    if (running_ != nullptr) running_->owner->switch_home(*running_);
  }

  // While it lives, its actor gives way to nobody.
  class uninterrupted {
   public:
    uninterrupted() : self_(std::exchange(running_, nullptr)) {}
    uninterrupted(const uninterrupted&) = delete;
    uninterrupted& operator=(const uninterrupted&) = delete;
    ~uninterrupted() { running_ = self_; }

   private:
    actor* const self_;
  };

  static void actor_main(void* self) {
    auto& a = *static_cast<actor*>(self);
    weft::arch::after_switch(a.fiber);
    for (;;) {
      a.body();
      a.done = true;
      a.owner->switch_home(a);
    }
  }

 private:
  struct actor {
    explorer* owner = nullptr;
    script body;
    bool done = true;
    weft::arch::context context{};
    [[no_unique_address]] weft::arch::fiber fiber;
    alignas(16) std::byte stack[64 * 1024];
  };
  struct choice {
    std::size_t taken;
    std::size_t options;
  };

  void run_once(std::vector<script> scripts) {
    while (actors_.size() < scripts.size()) add_actor();
    for (std::size_t i = 0; i < scripts.size(); ++i) {
      actors_[i]->body = std::move(scripts[i]);
      actors_[i]->done = false;
    }
    for (std::size_t step = 0;; ++step) {
      actor* ready[8];
      std::size_t count = 0;
      for (auto& a : actors_) {
        if (!a->done) ready[count++] = a.get();
      }
      if (count == 0) return;
      if (step == path_.size()) path_.push_back({0, count});
      switch_to(*ready[path_[step].taken]);
    }
  }

  // The next order in the order of orders: as far back as needed, another choice; all behind it anew.
  bool next_path() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  void add_actor() {
    actors_.push_back(std::make_unique<actor>());
    actor& a = *actors_.back();
    a.owner = this;
    weft::arch::create_fiber(a.fiber, a.stack, sizeof a.stack);
    weft::arch::prepare_context(a.context, a.stack + sizeof a.stack, &a);
  }

  void switch_to(actor& a) {
    running_ = &a;
    weft::arch::before_switch(home_fiber_, a.fiber, false);
    weft::arch::switch_context(&home_, &a.context);
    weft::arch::after_switch(home_fiber_);
  }
  void switch_home(actor& a) {
    running_ = nullptr;
    weft::arch::before_switch(a.fiber, home_fiber_, false);
    weft::arch::switch_context(&a.context, &home_);
    weft::arch::after_switch(a.fiber);
  }

  static inline actor* running_ = nullptr;

  std::vector<std::unique_ptr<actor>> actors_;
  std::vector<choice> path_;
  weft::arch::context home_{};
  [[no_unique_address]] weft::arch::fiber home_fiber_;
};

}  // namespace

// The queue's windows.
namespace weft::base {
void delay() noexcept { explorer::give_way(); }
}  // namespace weft::base

// What a fresh context runs. (This program has no goroutines, and so no other definition of it.)
extern "C" void weft_goroutine_main(void* argument) { explorer::actor_main(argument); }

namespace {

// Operations of one actor after the other; between two of them another actor may come as well.
template <class Op>
explorer::script one_by_one(std::vector<Op> ops, std::function<void(Op)> act) {
  return [ops = std::move(ops), act = std::move(act)] {
    for (const Op o : ops) {
      act(o);
      explorer::give_way();
    }
  };
}

enum class owner_op { push, pop, push_or_overflow, take_back };
constexpr owner_op every_owner_op[] = {owner_op::push, owner_op::pop, owner_op::push_or_overflow, owner_op::take_back};

// The n-th script of this length.
std::vector<owner_op> owner_script(int n, int length) {
  std::vector<owner_op> ops;
  for (int i = 0; i < length; ++i, n /= 4) ops.push_back(every_owner_op[n % 4]);
  return ops;
}

// One order of pieces: a ring with its owner, and thieves with rings of their own.
class scene {
 public:
  scene(std::uint32_t start, int filled) {
    begin_at(owner_, start);
    begin_at(thieves_[0], start + 1);
    begin_at(thieves_[1], start + 3);
    for (int i = 0; i < filled; ++i) owner_.push(fresh());
  }

  void act(owner_op what) {
    if (what == owner_op::pop) {
      item* const i = owner_.pop();
      if (i == nullptr) return;
      EXPECT_GT(i, last_popped_) << "the owner's items come in the order in which they were pushed";
      last_popped_ = i;
      ++i->seen;
      return;
    }
    if (what == owner_op::take_back) {
      item* const last = owner_.peek_last();
      if (owner_.take_back()) ++last->seen;
      return;
    }
    item* const i = fresh();
    if (what == owner_op::push) {
      if (!owner_.push(i)) ++i->seen;  // kept by the caller
    } else {
      put_last(i);
    }
  }

  // Grabs from `victim` and runs what it got, with nobody between.
  void steal(int who, ring& victim) {
    grab(who, victim);
    explorer::uninterrupted only_us;
    while (item* i = thieves_[who].pop()) ++i->seen;
  }

  // Grabs, and leaves what it got in its ring, where others may find it. One that still has something grabs nothing.
  void grab(int who, ring& victim) {
    if (!thieves_[who].empty()) return;
    std::uint32_t moved = 0;
    item* const i = victim.grab_half(thieves_[who], moved);
    EXPECT_EQ(moved == 0, i == nullptr);
    EXPECT_LE(moved, ring::capacity / 2);
    if (i != nullptr) ++i->seen;
  }

  ring& owner() { return owner_; }
  ring& thief(int who) { return thieves_[who]; }

  void check() {
    for (ring* r : {&owner_, &thieves_[0], &thieves_[1]}) {
      while (item* i = r->pop()) ++i->seen;
    }
    for (int i = 0; i < pushed_; ++i) EXPECT_EQ(items_[i].seen, 1) << "item " << i;
  }

 private:
  item* fresh() { return &items_[pushed_++]; }

  // As sched::put_last() does it.
  void put_last(item* i) {
    while (!owner_.push(i)) {
      item* half[ring::capacity / 2];
      const std::uint32_t n = owner_.take_half(half);
      if (n == 0) continue;
      for (std::uint32_t k = 0; k < n; ++k) ++half[k]->seen;
      ++i->seen;
      return;
    }
  }

  ring owner_;
  ring thieves_[2];
  item items_[16];
  item* last_popped_ = nullptr;
  int pushed_ = 0;
};

// Every script of the owner of this length, with every filling of the ring, against `thieves`, in every order.
template <class Thieves>
void explore(int length, Thieves thieves) {
  explorer e;
  std::unique_ptr<scene> now;
  int scripts = 1;
  for (int i = 0; i < length; ++i) scripts *= 4;
  long orders = 0;
  for (int filled = 0; filled <= static_cast<int>(ring::capacity); ++filled) {
    for (int n = 0; n < scripts; ++n) {
      orders += e.run(
          [&] {
            now = std::make_unique<scene>(about_to_wrap, filled);
            std::vector<explorer::script> actors = thieves(*now);
            actors.push_back(one_by_one<owner_op>(owner_script(n, length), [&s = *now](owner_op o) { s.act(o); }));
            return actors;
          },
          [&] { now->check(); });
      if (testing::Test::HasFailure()) {
        FAIL() << "filled with " << filled << ", owner's script " << n << ", order " << e.path();
      }
    }
  }
  EXPECT_GT(orders, scripts);
}

TEST(every_order_of_pieces, of_an_owner_and_a_thief_loses_nothing) {
  explore(test::under_sanitizer ? 3 : 4, [](scene& s) {
    return std::vector<explorer::script>{[&s] {
      s.steal(0, s.owner());
      explorer::give_way();
      s.steal(0, s.owner());
    }};
  });
}

TEST(every_order_of_pieces, of_an_owner_and_two_thieves_loses_nothing) {
  explore(test::under_sanitizer ? 2 : 3, [](scene& s) {
    return std::vector<explorer::script>{[&s] { s.steal(0, s.owner()); }, [&s] { s.steal(1, s.owner()); }};
  });
}

TEST(every_order_of_pieces, of_an_owner_a_thief_and_the_thiefs_thief_loses_nothing) {
  explore(test::under_sanitizer ? 2 : 3, [](scene& s) {
    return std::vector<explorer::script>{[&s] { s.grab(0, s.owner()); },
                                         [&s] {
                                           s.grab(1, s.thief(0));
                                           explorer::give_way();
                                           s.grab(1, s.thief(0));
                                         }};
  });
}

// ---- threads --------------------------------------------------------------------------------------------------------

constexpr int thief_count = 8;

// One owner that pushes and pops, thieves that take from it and from each other; every item is seen once.
template <std::uint32_t Capacity>
class crowd {
 public:
  explicit crowd(std::size_t items) : items_(items) {}

  void run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < thief_count; ++i) {
      threads.emplace_back([this, i] { steal(i); });
    }
    own();
    for (std::thread& t : threads) t.join();
    std::size_t wrong = 0;
    for (const item& i : items_) wrong += i.seen != 1 ? 1 : 0;
    EXPECT_EQ(wrong, 0u) << "of " << items_.size() << " items were not seen exactly once";
  }

 private:
  using queue = ring_of<Capacity>;

  void see(item* i) {
    ++i->seen;
    seen_.fetch_add(1, std::memory_order_relaxed);
  }
  bool all_seen() const { return seen_.load(std::memory_order_relaxed) >= items_.size(); }

  void own() {
    weft::base::random dice(1);
    for (item& i : items_) {
      put_last(&i);
      // Now and then the owner runs its ring dry, which is where it meets the thieves.
      for (std::uint32_t n = dice.below(Capacity) == 0 ? Capacity : dice.below(2); n > 0; --n) {
        if (dice.below(2) == 0) {
          item* const last = queues_[0].peek_last();
          if (queues_[0].take_back()) see(last);
        } else if (item* const own = queues_[0].pop()) {
          see(own);
        }
      }
      if (dice.below(64) == 0) std::this_thread::yield();
    }
    while (item* i = queues_[0].pop()) see(i);
  }

  void put_last(item* i) {
    while (!queues_[0].push(i)) {
      item* half[Capacity / 2];
      const std::uint32_t n = queues_[0].take_half(half);
      if (n == 0) continue;
      for (std::uint32_t k = 0; k < n; ++k) see(half[k]);
      return see(i);
    }
  }

  void steal(int who) {
    weft::base::random dice(static_cast<std::uint64_t>(who) + 2);
    queue& own = queues_[static_cast<std::size_t>(who) + 1];
    while (!all_seen()) {
      queue& victim = queues_[dice.below(4) == 0 ? dice.below(thief_count + 1) : 0];
      std::uint32_t moved = 0;
      item* i = &victim == &own ? nullptr : victim.grab_half(own, moved);
      if (i == nullptr) {
        std::this_thread::yield();
        continue;
      }
      see(i);
      while ((i = own.pop()) != nullptr) see(i);
    }
  }

  std::vector<item> items_;
  std::atomic<std::size_t> seen_{0};
  std::array<queue, thief_count + 1> queues_;
};

TEST(a_crowd_of_thieves, sees_every_item_of_a_small_ring_once) {
  crowd<4>(test::scaled(400'000, 150'000, 40'000)).run();
}

TEST(a_crowd_of_thieves, sees_every_item_of_a_ring_of_full_size_once) {
  crowd<256>(test::scaled(1'000'000, 300'000, 80'000)).run();
}

}  // namespace
