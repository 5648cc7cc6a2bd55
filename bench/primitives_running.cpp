// What sleeping and waking costs: of threads, with the note that an M sleeps on, and of goroutines, in a runtime that
// runs. The first are rare events of many microseconds, so each is timed by itself, a fixed number of times.
#include <benchmark/benchmark.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/note.h"
#include "sched/idle.h"
#include "sched/scheduler.h"
#include "sched/section.h"

namespace {

using weft::sched::sched;
using clock = std::chrono::steady_clock;

constexpr int samples = 2'000;
constexpr std::chrono::microseconds falls_asleep{100};  // long enough for a thread to be asleep in the kernel

double seconds(clock::duration d) { return std::chrono::duration<double>(d).count(); }

void spin_for(clock::duration d) {
  for (const auto start = clock::now(); clock::now() - start < d;) {
  }
}

// A thread that sleeps on a note, again and again, and says when it woke.
class sleeper {
 public:
  ~sleeper() {
    stop_.store(true, std::memory_order_relaxed);
    note_.wake();
    thread_.join();
  }
  void wake() { note_.wake(); }
  clock::time_point await_woken() {
    while (!woken_.exchange(false, std::memory_order_acquire)) {
    }
    return when_;
  }

 private:
  void run() {
    for (;;) {
      note_.sleep();
      if (stop_.load(std::memory_order_relaxed)) return;
      when_ = clock::now();
      woken_.store(true, std::memory_order_release);
    }
  }

  weft::base::note note_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> woken_{false};
  clock::time_point when_;
  std::thread thread_{[this] { run(); }};
};

// What it costs the thread that wakes another.
void wake_a_thread(benchmark::State& state) {
  sleeper s;
  for (auto _ : state) {
    spin_for(falls_asleep);
    const auto start = clock::now();
    s.wake();
    state.SetIterationTime(seconds(clock::now() - start));
    s.await_woken();
  }
}

// How long it takes until that one runs.
void wake_a_thread_until_it_runs(benchmark::State& state) {
  sleeper s;
  for (auto _ : state) {
    spin_for(falls_asleep);
    const auto start = clock::now();
    s.wake();
    state.SetIterationTime(seconds(s.await_woken() - start));
  }
}

// Two threads wake each other and sleep in turn: two wakes and two parks.
void park_and_wake_round_trip(benchmark::State& state) {
  weft::base::note ping, pong;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (;;) {
      ping.sleep();
      if (stop.load(std::memory_order_relaxed)) return;
      pong.wake();
    }
  });
  for (auto _ : state) {
    ping.wake();
    pong.sleep();
  }
  stop.store(true, std::memory_order_relaxed);
  ping.wake();
  other.join();
}

bool somebody_can_be_woken() {
  weft::base::lock_guard guard(sched.lock);
  return sched.idle_ps.load() > 0 && sched.spinning.load() == 0 && sched.retiring.load() == 0 && sched.idle_ms > 0;
}

// What it costs a goroutine that has made work, when a P is idle and nobody looks for work.
void wake_a_processor_without_a_spinner(benchmark::State& state) {
  weft::run(
      [&] {
        for (auto _ : state) {
          do {
            spin_for(falls_asleep);
          } while (!somebody_can_be_woken());
          const weft::sched::section in_runtime;
          const auto start = clock::now();
          weft::sched::wake_processor();
          state.SetIterationTime(seconds(clock::now() - start));
        }
      },
      {.procs = 2});
}

template <class Body>
void on_one_p(Body body) {
  weft::run(body, {.procs = 1});
}

// A send and a receive by one goroutine, which do not park.
void channel_pair(benchmark::State& state) {
  on_one_p([&] {
    const weft::chan<int> ch(1);
    for (auto _ : state) {
      ch.send(1);
      benchmark::DoNotOptimize(ch.recv());
    }
  });
}

// A send that hands its value to a goroutine that waits for it; there and back are two of these, and two switches.
void channel_pair_of_two_goroutines(benchmark::State& state) {
  on_one_p([&] {
    const weft::chan<int> ping, pong;
    weft::go([=] {
      for (const int v : ping) pong.send(v);
      pong.close();
    });
    for (auto _ : state) {
      ping.send(1);
      benchmark::DoNotOptimize(pong.recv());
    }
    ping.close();
    pong.recv();
  });
}

void mutex(benchmark::State& state) {
  on_one_p([&] {
    weft::mutex m;
    for (auto _ : state) {
      m.lock();
      m.unlock();
    }
  });
}

BENCHMARK(wake_a_thread)->UseManualTime()->Iterations(samples);
BENCHMARK(wake_a_thread_until_it_runs)->UseManualTime()->Iterations(samples);
BENCHMARK(park_and_wake_round_trip)->UseRealTime();
BENCHMARK(wake_a_processor_without_a_spinner)->UseManualTime()->Iterations(samples);
BENCHMARK(channel_pair)->UseRealTime();
BENCHMARK(channel_pair_of_two_goroutines)->UseRealTime();
BENCHMARK(mutex)->UseRealTime();

}  // namespace
