// Random spawn, yield, park, ready and exit, from goroutines and from plain threads, on 1 to 32 Ps, for as long as the
// environment says:
//
//   WEFT_STRESS_SECONDS=N   in all (3 if not set)
//   WEFT_SOAK=1             120 seconds
//   WEFT_STRESS_SEED=N      repeats the decisions (not the interleavings) of the run that printed this seed
//
// The account at the end of each round: every goroutine that was spawned ran once, ended once, and none is left. If
// nothing at all ends for a minute, the watchdog prints where everybody is and aborts.
#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/build.h"
#include "support/stress.h"

namespace {

using clock = std::chrono::steady_clock;
using test::progress;
using test::random_source;

// ---- the account of one round ----

// Where a goroutine is, for whoever must find out why it does not end.
enum class whereabouts : std::uint8_t { unborn, queued, running, yielding, in_get, in_wait, in_wait_for, ended };
constexpr const char* names_of_whereabouts[] = {"unborn", "queued",  "running",     "yielding",
                                                "in get", "in wait", "in wait_for", "ended"};

struct entry {
  std::atomic<std::uint8_t> runs{0};
  std::atomic<whereabouts> where{whereabouts::unborn};
};

struct round_state {
  round_state(std::uint64_t s, int p, std::size_t b) : seed(s), procs(p), budget(b), entries(b) {}

  const std::uint64_t seed;
  const int procs;
  const std::size_t budget;
  std::vector<entry> entries;

  std::atomic<std::size_t> spawned{0};
  std::atomic<std::size_t> ended{0};
  std::atomic<int> outsiders_left{0};
  std::atomic<int> live_frames{0};
  std::atomic<int> errors{0};

  // Futures given away by the goroutine that spawned them, for anyone to wait on.
  std::mutex mailbox_lock;
  std::vector<weft::future<std::uint64_t>> mailbox;

  // The order of the loads matters: what has ended is looked at before what may still be spawned.
  bool is_over() const {
    const std::size_t gone = ended;
    return outsiders_left == 0 && spawned == gone;
  }
};

constexpr std::size_t most_alive = test::scaled(20'000, 3'000, 1'500);

std::atomic<round_state*> current_round{nullptr};

// ---- the watchdog ----

void print_threads() {
  DIR* const tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* const task = ::readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    const std::string folder = std::string("/proc/self/task/") + task->d_name + "/";
    std::string comm, stat, wchan, call;
    std::getline(std::ifstream(folder + "comm"), comm);
    std::getline(std::ifstream(folder + "stat"), stat);
    std::getline(std::ifstream(folder + "wchan"), wchan);
    std::getline(std::ifstream(folder + "syscall"), call);
    const std::size_t behind_name = stat.rfind(')');
    const char state = behind_name + 2 < stat.size() ? stat[behind_name + 2] : '?';
    std::fprintf(stderr, "  thread %s %-16s state %c wchan %s syscall %s\n", task->d_name, comm.c_str(), state,
                 wchan.c_str(), call.c_str());
  }
  ::closedir(tasks);
}

void print_round(const round_state& r) {
  std::fprintf(stderr, "  round seed %" PRIu64 ", procs %d: spawned %zu, ended %zu, plain threads left %d\n", r.seed,
               r.procs, r.spawned.load(), r.ended.load(), r.outsiders_left.load());
  std::size_t count[std::size(names_of_whereabouts)] = {};
  for (std::size_t i = 0; i < std::min(r.spawned.load(), r.budget); ++i) {
    ++count[static_cast<std::size_t>(r.entries[i].where.load())];
  }
  for (std::size_t i = 0; i < std::size(count); ++i)
    std::fprintf(stderr, "  %8zu %s\n", count[i], names_of_whereabouts[i]);
  std::fprintf(stderr, "  max_procs %d, num_goroutine %zu, num_thread %zu\n", weft::runtime::max_procs(),
               weft::runtime::num_goroutine(), weft::runtime::num_thread());
}

void say_where_everybody_is() {
  std::fprintf(stderr, "scheduler_stress: nothing ended for a minute\n");
  if (const round_state* const r = current_round) print_round(*r);
  print_threads();
}

// ---- what the goroutines and the threads do ----

[[gnu::noinline]] int get_errno() {
  asm volatile("" ::: "memory");
  return errno;
}
[[gnu::noinline]] void set_errno(int value) {
  errno = value;
  asm volatile("" ::: "memory");
}

// One actor: a goroutine, or (without an entry) a plain thread.
class actor {
 public:
  actor(round_state& r, std::uint64_t seed, entry* e) : round_(r), random_(seed), entry_(e) {}

  void act(int steps) {
    for (int i = 0; i < steps; ++i) step();
  }

 private:
  using child = weft::future<std::uint64_t>;

  void step() {
    switch (random_.below(12)) {
      case 0:
      case 1:
        spawn();
        break;
      case 2:
      case 3:
        yield();
        break;
      case 4:
        spawn_and_get();
        break;
      case 5:
        spawn_and_wait_for();
        break;
      case 6:
        spawn_many_and_join();
        break;
      case 7:
        give_away_a_child();
        break;
      case 8:
        adopt_a_child();
        break;
      case 9:
        spawn_and_forget_its_future();
        break;
      case 10:
        throw_and_yield_while_catching();
        break;
      case 11:
        compute();
        break;
    }
  }

  void spawn();
  child spawn_child();
  bool may_spawn(std::size_t& ticket);

  void is(whereabouts where) {
    if (entry_ != nullptr) entry_->where.store(where, std::memory_order_relaxed);
  }

  void yield() {
    const int mark = static_cast<int>(random_.below(1000));
    set_errno(mark);
    is(whereabouts::yielding);
    for (std::uint64_t n = random_.below(4) + 1; n > 0; --n) weft::yield();
    is(whereabouts::running);
    if (entry_ != nullptr && get_errno() != mark) ++round_.errors;
  }

  // What a child returns depends on its ticket alone; one that exits returns nothing.
  void settle(child& c) {
    is(whereabouts::in_get);
    try {
      if (c.get() % 2 != 1) ++round_.errors;
    } catch (const std::future_error&) {
    } catch (const std::runtime_error&) {
    }
    is(whereabouts::running);
  }

  void spawn_and_get() {
    if (child c = spawn_child(); c.valid()) settle(c);
  }

  void spawn_and_wait_for() {
    child c = spawn_child();
    if (!c.valid()) return;
    is(whereabouts::in_wait_for);
    const auto status = c.wait_for(std::chrono::microseconds(random_.below(300)));
    is(whereabouts::running);
    if (status == std::future_status::ready) settle(c);
  }

  void spawn_many_and_join() {
    std::vector<child> all;
    for (std::uint64_t n = random_.below(random_.one_in(20) ? 600 : 10); n > 0; --n) {
      child c = spawn_child();
      if (!c.valid()) break;
      all.push_back(std::move(c));
    }
    while (!all.empty()) {
      std::swap(all[random_.below(all.size())], all.back());
      is(whereabouts::in_wait);
      all.back().wait();
      is(whereabouts::running);
      settle(all.back());
      all.pop_back();
    }
  }

  void give_away_a_child() {
    child c = spawn_child();
    const std::lock_guard guard(round_.mailbox_lock);
    if (c.valid()) round_.mailbox.push_back(std::move(c));
  }

  void adopt_a_child() {
    child c;
    {
      const std::lock_guard guard(round_.mailbox_lock);
      if (round_.mailbox.empty()) return;
      std::swap(round_.mailbox[random_.below(round_.mailbox.size())], round_.mailbox.back());
      c = std::move(round_.mailbox.back());
      round_.mailbox.pop_back();
    }
    // The child may have been given away by an ancestor of ours that has adopted us: waiting without end could be a
    // deadlock of our own making.
    is(whereabouts::in_wait_for);
    const auto status = c.wait_for(std::chrono::microseconds(random_.below(2000)));
    is(whereabouts::running);
    if (status == std::future_status::ready) settle(c);
  }

  void spawn_and_forget_its_future() { spawn_child(); }

  void throw_and_yield_while_catching() {
    const std::uint64_t mark = random_.next();
    try {
      try {
        throw mark;
      } catch (std::uint64_t) {
        yield();
        spawn_and_get();
        throw;
      }
    } catch (std::uint64_t again) {
      if (again != mark) ++round_.errors;
    }
  }

  void compute() {
    volatile std::uint64_t sink = 0;
    for (std::uint64_t n = random_.below(3000); n > 0; --n) sink = sink + n;
  }

  round_state& round_;
  random_source random_;
  entry* entry_;
};

// The life of the goroutine that has drawn `ticket`. Its destructor is the last thing a goroutine does, also of one
// that exits or throws.
class life {
 public:
  life(round_state& r, entry& e) : round_(r), entry_(e) {
    if (e.runs.fetch_add(1) != 0) ++r.errors;
    e.where = whereabouts::running;
    ++r.live_frames;
  }
  life(const life&) = delete;
  life& operator=(const life&) = delete;
  ~life() {
    --round_.live_frames;
    entry_.where = whereabouts::ended;
    ++progress;
    ++round_.ended;
  }

 private:
  round_state& round_;
  entry& entry_;
};

void live(round_state& r, std::size_t ticket) {
  entry& own = r.entries[ticket];
  life here(r, own);
  random_source random(r.seed ^ (ticket * 0x9e3779b97f4a7c15));
  actor self(r, random.next(), &own);
  // A goroutine spawns more than one other on average: the budget ends the round.
  self.act(static_cast<int>(random.below(3)));
  if (random.one_in(16)) weft::exit_goroutine();
  self.act(static_cast<int>(random.below(2)));
}

// Draws a ticket, if the budget has one and not too many are alive.
bool actor::may_spawn(std::size_t& ticket) {
  if (round_.spawned - round_.ended > most_alive) return false;
  std::size_t drawn = round_.spawned;
  do {
    if (drawn >= round_.budget) return false;
  } while (!round_.spawned.compare_exchange_weak(drawn, drawn + 1));
  ticket = drawn;
  round_.entries[ticket].where = whereabouts::queued;
  return true;
}

void actor::spawn() {
  std::size_t ticket = 0;
  if (!may_spawn(ticket)) return;
  switch (random_.below(5)) {
    case 0:
      weft::go(live, std::ref(round_), ticket);
      break;
    case 1:
      weft::go([&r = round_, ticket, token = std::make_unique<std::size_t>(ticket)] { live(r, *token); });
      break;
    case 2: {
      struct large {
        std::size_t content[40];
      } block{};
      block.content[39] = ticket;
      weft::go([&r = round_, block] { live(r, block.content[39]); });
      break;
    }
    case 3:
      weft::go({.name = "stressed", .stack_size = (64u + 64u * random_.below(4)) * 1024u}, live, std::ref(round_),
               ticket);
      break;
    case 4:
      weft::go([&r = round_, ticket] { live(r, ticket); });
      break;
  }
}

actor::child actor::spawn_child() {
  std::size_t ticket = 0;
  if (!may_spawn(ticket)) return {};
  return weft::async([&r = round_, ticket]() -> std::uint64_t {
    live(r, ticket);
    if (ticket % 64 == 0) throw std::runtime_error("one in 64 fails");
    return 2 * ticket + 1;
  });
}

// ---- the rounds ----

// Without a limit of its own: that is the watchdog's.
template <class Condition>
void await(Condition condition) {
  while (!condition()) weft::yield();
}

void start_outsiders(round_state& r, std::vector<std::thread>& outsiders, int count, int steps) {
  r.outsiders_left = count;
  for (int i = 0; i < count; ++i) {
    outsiders.emplace_back([&r, i, steps] {
      actor(r, r.seed + static_cast<std::uint64_t>(i), nullptr).act(steps);
      --r.outsiders_left;
    });
  }
}

// The mailbox may hold futures whose goroutines have ended, and values nobody will read.
void expect_balanced(round_state& r) {
  r.mailbox.clear();
  EXPECT_EQ(r.errors, 0);
  EXPECT_EQ(r.spawned, r.ended);
  EXPECT_EQ(r.live_frames, 0);
  for (std::size_t i = 0; i < r.spawned; ++i) ASSERT_EQ(r.entries[i].runs, 1) << "goroutine " << i;
}

void in_one_run(round_state& r, random_source& random) {
  std::vector<std::thread> outsiders;
  weft::run(
      [&] {
        start_outsiders(r, outsiders, static_cast<int>(random.below(4)), 50);
        actor(r, random.next(), nullptr).act(200);
        await([&] { return r.is_over(); });
        await([] { return weft::runtime::num_goroutine() == 1; });
      },
      {.procs = r.procs});
  for (auto& outsider : outsiders) outsider.join();
}

// The first run ends while goroutines are in every state, and the second, with other Ps, must continue them all.
void in_two_runs(round_state& r, random_source& random) {
  weft::run([&] { actor(r, random.next(), nullptr).act(200); }, {.procs = r.procs});
  weft::run(
      [&] {
        await([&] { return r.is_over(); });
        await([] { return weft::runtime::num_goroutine() == 1; });
      },
      {.procs = static_cast<int>(random.below(4)) + 1});
}

void in_the_background(round_state& r, random_source& random) {
  weft::start({.procs = r.procs});
  std::vector<std::thread> outsiders;
  start_outsiders(r, outsiders, static_cast<int>(random.below(4)) + 1, 100);
  for (auto& outsider : outsiders) outsider.join();
  await([&] { return r.is_over(); });
  await([] { return weft::runtime::num_goroutine() == 0; });
  weft::shutdown();
}

TEST(scheduler_stress, every_goroutine_that_is_spawned_runs_once_and_ends) {
  constexpr int all_procs[] = {1, 2, 3, 8, 32};
  const std::uint64_t seed = test::stress_seed();
  std::printf("WEFT_STRESS_SEED=%" PRIu64 "\n", seed);
  std::fflush(stdout);

  const test::watchdog watching(say_where_everybody_is);
  random_source random(seed);
  const auto end = clock::now() + test::stress_duration();
  std::size_t rounds = 0;
  std::size_t total = 0;
  while (!testing::Test::HasFatalFailure() && !testing::Test::HasNonfatalFailure() &&
         (rounds < std::size(all_procs) || clock::now() < end)) {
    const int procs = all_procs[rounds % std::size(all_procs)];
    round_state r(random.next(), procs, test::scaled(40'000, 6'000, 6'000));
    current_round = &r;
    switch (random.below(4)) {
      case 0:
        in_two_runs(r, random);
        break;
      case 1:
        in_the_background(r, random);
        break;
      default:
        in_one_run(r, random);
        break;
    }
    current_round = nullptr;
    expect_balanced(r);
    total += r.spawned;
    ++rounds;
  }
  std::printf("%zu goroutines in %zu rounds\n", total, rounds);
}

}  // namespace
