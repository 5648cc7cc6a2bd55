// What the scheduler's parts cost, each by itself, in a runtime that was never started: the queues of a P and of all,
// stealing, and the look whether somebody must be woken. The column `each` is one operation. primitives_running.cpp has
// what needs threads.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "gmp/run_queue.h"
#include "sched/idle.h"
#include "sched/queues.h"
#include "sched/scheduler.h"

namespace {

using weft::sched::processor;
using weft::sched::runnable;
using weft::sched::sched;
using ring = weft::gmp::run_queue<runnable, processor::ring_size>;
using clock = std::chrono::steady_clock;

runnable items[processor::ring_size];

// Times `measure`, which does `ops` operations, but not `prepare`. A look at the clock costs as much as several of
// them, so one look is for many.
template <class Prepare, class Measure>
void batches(benchmark::State& state, int ops, Prepare prepare, Measure measure) {
  for (auto _ : state) {
    prepare();
    const auto start = clock::now();
    measure();
    state.SetIterationTime(std::chrono::duration<double>(clock::now() - start).count());
  }
  state.counters["each"] = benchmark::Counter(static_cast<double>(state.iterations() * ops),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void fill(ring& r, int count) {
  while (r.pop() != nullptr) {
  }
  for (int i = 0; i < count; ++i) r.push(&items[i]);
}

void run_queue_put(benchmark::State& state) {
  auto r = std::make_unique<ring>();
  batches(
      state, processor::ring_size, [&] { fill(*r, 0); },
      [&] {
        for (runnable& item : items) benchmark::DoNotOptimize(r->push(&item));
      });
}

void run_queue_get(benchmark::State& state) {
  auto r = std::make_unique<ring>();
  batches(
      state, processor::ring_size, [&] { fill(*r, processor::ring_size); },
      [&] {
        for (std::uint32_t i = 0; i < processor::ring_size; ++i) benchmark::DoNotOptimize(r->pop());
      });
}

// Where there is one P only, nobody steals.
void run_queue_get_alone(benchmark::State& state) {
  auto r = std::make_unique<ring>();
  batches(
      state, processor::ring_size, [&] { fill(*r, processor::ring_size); },
      [&] {
        for (std::uint32_t i = 0; i < processor::ring_size; ++i) benchmark::DoNotOptimize(r->pop_unshared());
      });
}

void empty_global_queue() {
  weft::base::lock_guard guard(sched.lock);
  while (sched.global.pop() != nullptr) {
  }
  weft::sched::global_size_changed();
}

// A put into a full ring: half of it, and the newcomer, go to the global queue.
void run_queue_overflow(benchmark::State& state) {
  constexpr int count = 8;
  auto ps = std::make_unique<std::array<processor, count>>();
  batches(
      state, count,
      [&] {
        empty_global_queue();
        for (processor& p : *ps) fill(p.ring, processor::ring_size);
      },
      [&] {
        for (processor& p : *ps) weft::sched::put_last(&p, &items[0]);
      });
  empty_global_queue();
}

void global_put(benchmark::State& state) {
  constexpr int count = 128;
  batches(state, count, empty_global_queue, [] {
    for (int i = 0; i < count; ++i) weft::sched::put_global(&items[i]);
  });
  empty_global_queue();
}

// One, as every 61st time.
void global_get(benchmark::State& state) {
  constexpr int count = 128;
  auto p = std::make_unique<processor>();
  batches(
      state, count,
      [] {
        for (int i = 0; i < count; ++i) weft::sched::put_global(&items[i]);
      },
      [&] {
        for (int i = 0; i < count; ++i) {
          weft::base::lock_guard guard(sched.lock);
          benchmark::DoNotOptimize(weft::sched::take_global_one(p.get()));
        }
      });
}

// A fair share, 128 of 256 for one of two Ps: what one of them costs.
void global_get_in_batches(benchmark::State& state) {
  auto p = std::make_unique<processor>();
  sched.procs.store(2, std::memory_order_relaxed);
  batches(
      state, 128,
      [&] {
        fill(p->ring, 0);
        empty_global_queue();
        for (runnable& item : items) weft::sched::put_global(&item);
      },
      [&] {
        weft::base::lock_guard guard(sched.lock);
        benchmark::DoNotOptimize(weft::sched::take_global_batch(p.get()));
      });
  empty_global_queue();
  sched.procs.store(0, std::memory_order_relaxed);
}

constexpr int thefts = 16;

// range(0) are stolen from a queue of twice as many, by the thread that filled it: without the cost of moving cache
// lines.
void steal(benchmark::State& state) {
  const int wanted = static_cast<int>(state.range(0));
  auto victims = std::make_unique<std::array<ring, thefts>>();
  auto thieves = std::make_unique<std::array<ring, thefts>>();
  batches(
      state, thefts,
      [&] {
        for (ring& r : *victims) fill(r, 2 * wanted);
        for (ring& r : *thieves) fill(r, 0);
      },
      [&] {
        for (int i = 0; i < thefts; ++i) {
          std::uint32_t moved = 0;
          benchmark::DoNotOptimize((*victims)[i].grab_half((*thieves)[i], moved));
        }
      });
}

// The same from queues that another thread has filled.
void steal_from_another_core(benchmark::State& state) {
  const int wanted = static_cast<int>(state.range(0));
  auto victims = std::make_unique<std::array<ring, thefts>>();
  auto thieves = std::make_unique<std::array<ring, thefts>>();
  std::atomic<int> turn{0};  // 0: ours, 1: the owner's, 2: over
  std::thread owner([&] {
    for (int now; (now = turn.load(std::memory_order_acquire)) != 2;) {
      if (now == 0) continue;
      for (ring& r : *victims) fill(r, 2 * wanted);
      turn.store(0, std::memory_order_release);
    }
  });
  batches(
      state, thefts,
      [&] {
        for (ring& r : *thieves) fill(r, 0);
        turn.store(1, std::memory_order_release);
        while (turn.load(std::memory_order_acquire) != 0) std::this_thread::yield();
      },
      [&] {
        for (int i = 0; i < thefts; ++i) {
          std::uint32_t moved = 0;
          benchmark::DoNotOptimize((*victims)[i].grab_half((*thieves)[i], moved));
        }
      });
  turn.store(2, std::memory_order_release);
  owner.join();
}

void steal_in_vain(benchmark::State& state) {
  auto victim = std::make_unique<ring>();
  auto thief = std::make_unique<ring>();
  for (auto _ : state) {
    std::uint32_t moved = 0;
    benchmark::DoNotOptimize(victim->grab_half(*thief, moved));
  }
}

// The look that every spawn and every wakeup takes, when there is nobody to wake.
void look_whether_to_wake(benchmark::State& state, int idle_ps, int spinning) {
  sched.idle_ps.store(idle_ps, std::memory_order_relaxed);
  sched.spinning.store(spinning, std::memory_order_relaxed);
  for (auto _ : state) {
    weft::sched::wake_processor();
    benchmark::ClobberMemory();
  }
  sched.idle_ps.store(0, std::memory_order_relaxed);
  sched.spinning.store(0, std::memory_order_relaxed);
}

BENCHMARK(run_queue_get)->UseManualTime();
BENCHMARK(run_queue_get_alone)->UseManualTime();
BENCHMARK(run_queue_put)->UseManualTime();
BENCHMARK(run_queue_overflow)->UseManualTime();
BENCHMARK(global_put)->UseManualTime();
BENCHMARK(global_get)->UseManualTime();
BENCHMARK(global_get_in_batches)->UseManualTime();
BENCHMARK(steal)->Arg(4)->Arg(16)->UseManualTime();
BENCHMARK(steal_from_another_core)->Arg(4)->Arg(16)->UseManualTime();
BENCHMARK(steal_in_vain);
BENCHMARK_CAPTURE(look_whether_to_wake, all_are_busy, 0, 0);
BENCHMARK_CAPTURE(look_whether_to_wake, somebody_spins, 1, 1);

}  // namespace
