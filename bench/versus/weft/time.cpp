// Timers and sleepers.
#include <weft/weft.h>

#include <cstdint>
#include <vector>

#include "sched.h"

namespace bench {
namespace {

using namespace std::chrono_literals;

outcome timer_channel(const arguments& a) {
  std::uint64_t stopped = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    weft::timer t(1h);
    stopped += t.stop();
  }
  return w.stop(a.n, stopped == a.n);
}
const registered timer_channel_workload{{"timer_chan", 5'000'000, 500'000, timer_channel}};

outcome timer_function(const arguments& a) {
  std::uint64_t stopped = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    weft::timer t = weft::after_func(1h, [] {});
    stopped += t.stop();
  }
  return w.stop(a.n, stopped == a.n);
}
const registered timer_function_workload{{"timer_func", 5'000'000, 500'000, timer_function}};

// The same naps in every program: a generator of three lines.
std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

outcome sleepers(const arguments& a) {
  wait_group wg;
  wg.add(static_cast<int>(a.n));
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    weft::go([&wg, i] {
      std::uint64_t state = i;
      for (int nap = 0; nap < 5; ++nap) weft::sleep_for(std::chrono::milliseconds(1 + next_random(state) % 100));
      wg.done();
    });
  }
  wg.wait();
  return w.stop(5 * a.n);
}
const registered sleepers_workload{{"sleepers", 100'000, 0, sleepers}};

outcome sleep_lateness(const arguments& a) {
  std::vector<std::chrono::nanoseconds> samples;
  samples.reserve(a.n);
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    const auto began = clock::now();
    weft::sleep_for(1ms);
    samples.push_back(clock::now() - began - 1ms);
  }
  outcome out = w.stop(a.n);
  add_percentiles(out, samples);
  return out;
}
const registered sleep_workload{{"sleep1ms", 2'000, 10, sleep_lateness}};

}  // namespace
}  // namespace bench
