// The timer heap alone, without goroutines: what a timer costs beside 0 to a million others.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <numeric>
#include <random>
#include <vector>

#include <sys/mman.h>

#include "timer/heap.h"

namespace {

namespace timers = weft::timers;
using timers::timer_node;

constexpr std::int64_t second = 1'000'000'000;

void nothing(void*, std::uint64_t, std::int64_t) noexcept {}

// `count` timers due between 1 s and 2 s, `stride` bytes apart: those of sleepers lie on as many stacks.
class crowd {
 public:
  explicit crowd(std::size_t count, std::size_t stride = sizeof(timer_node), timers::callback fn = nothing)
      : count_(count), stride_(stride) {
    void* p =
        ::mmap(nullptr, count * stride + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    ::madvise(p, count * stride + 1, MADV_NOHUGEPAGE);  // as for stacks
    memory_ = static_cast<std::byte*>(p);
    for (std::size_t i = 0; i < count; ++i) new (memory_ + i * stride) timer_node(fn, &at(i));
  }
  ~crowd() {
    for (std::size_t i = 0; i < count_; ++i) {
      timers::stop_sync(at(i));
      at(i).~timer_node();
    }
    ::munmap(memory_, count_ * stride_ + 1);
  }

  timer_node& at(std::size_t i) { return *reinterpret_cast<timer_node*>(memory_ + i * stride_); }
  std::size_t size() const { return count_; }
  std::int64_t random_when() { return second + static_cast<std::int64_t>(random_() % second); }
  void add_all(timers::heap& heap) {
    for (std::size_t i = 0; i < count_; ++i) timers::add(heap, at(i), random_when());
  }
  std::vector<std::uint32_t> shuffled() {
    std::vector<std::uint32_t> order(count_);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

 private:
  std::size_t count_, stride_;
  std::byte* memory_;
  std::mt19937_64 random_{1};
};

// One timer created and stopped beside range(0) others; it is due before all of them, somewhere among them, or last.
template <class When>
void create_and_stop(benchmark::State& state, When when) {
  timers::heap heap;
  crowd others(static_cast<std::size_t>(state.range(0)));
  others.add_all(heap);
  std::vector<std::int64_t> deadlines(4096);
  for (auto& d : deadlines) d = when(others);
  std::size_t i = 0;
  for (auto _ : state) {
    timer_node node(nothing, nullptr);
    timers::add(heap, node, deadlines[i++ % deadlines.size()]);
    timers::stop(node);
  }
}
void create_and_stop_first(benchmark::State& state) {
  create_and_stop(state, [](crowd&) { return second / 2; });
}
void create_and_stop_random(benchmark::State& state) {
  create_and_stop(state, [](crowd& c) { return c.random_when(); });
}
void create_and_stop_last(benchmark::State& state) {
  create_and_stop(state, [](crowd&) { return 3 * second; });
}

// Requests in flight: 64 short timeouts at a time beside range(0) long ones, stopped in random order.
void create_and_stop_64_in_flight(benchmark::State& state) {
  timers::heap heap;
  crowd others(static_cast<std::size_t>(state.range(0)));
  others.add_all(heap);
  crowd flying(64);
  std::mt19937 random(2);
  std::vector<std::uint8_t> picks(65536);
  for (auto& p : picks) p = static_cast<std::uint8_t>(random() % 64);
  std::size_t i = 0;
  std::int64_t now = second / 2;
  for (auto _ : state) {
    timer_node& node = flying.at(picks[i++ % picks.size()]);
    timers::stop(node);
    timers::add(heap, node, now++);
  }
}

// All created, then all stopped in random order: a pair of each for one item.
void create_all_then_stop_all(benchmark::State& state) {
  crowd all(static_cast<std::size_t>(state.range(0)));
  const auto order = all.shuffled();
  timers::heap heap;
  for (auto _ : state) {
    all.add_all(heap);
    for (std::uint32_t i : order) timers::stop(all.at(i));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// A connection's deadline moved on with every request, range(0) connections.
void reset_random(benchmark::State& state) {
  timers::heap heap;
  crowd all(static_cast<std::size_t>(state.range(0)));
  all.add_all(heap);
  const auto order = all.shuffled();
  std::size_t i = 0;
  std::int64_t when = 2 * second;
  for (auto _ : state) timers::reset(all.at(order[i++ % order.size()]), when++);
}

std::vector<timer_node*> woken;

void wake(void* node, std::uint64_t, std::int64_t) noexcept { woken.push_back(static_cast<timer_node*>(node)); }

// range(0) sleepers on stacks of 256 KiB, a hundredth or so due at a time. What is not timed is their going back to
// sleep, which a goroutine does on a stack that is warm again.
void fire(benchmark::State& state) {
  timers::heap heap;
  crowd all(static_cast<std::size_t>(state.range(0)), 256 * 1024, wake);
  woken.reserve(all.size());
  all.add_all(heap);
  std::mt19937_64 random(3);
  std::int64_t now = second, fired = 0;
  for (auto _ : state) {
    now += second / 100;
    heap.run(now);
    state.PauseTiming();
    fired += static_cast<std::int64_t>(woken.size());
    for (timer_node* n : woken) timers::add(heap, *n, now + static_cast<std::int64_t>(random() % second));
    woken.clear();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(fired);
}

void run_with_nothing_due(benchmark::State& state) {
  timers::heap heap;
  crowd others(1000);
  others.add_all(heap);
  for (auto _ : state) benchmark::DoNotOptimize(heap.run(1));
}

BENCHMARK(create_and_stop_first)->Arg(0)->Arg(1000)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(create_and_stop_random)->Arg(1000)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(create_and_stop_last)->Arg(1000)->Arg(1'000'000);
BENCHMARK(create_and_stop_64_in_flight)->Arg(0)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(create_all_then_stop_all)->Arg(1000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(reset_random)->Arg(1000)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(fire)->Arg(1000)->Arg(100'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(run_with_nothing_due);

}  // namespace
