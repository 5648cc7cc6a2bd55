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

// Clients that wake every millisecond, whatever happened before, and spawn a task each time. One that falls
// far behind, because the machine did something else, does not try to catch up.
outcome load70(const arguments& a) {
  std::vector<client_log> logs = make_client_logs(a);
  wait_group wg;
  wg.add(static_cast<int>(logs.size() * (a.n + 1)));
  const stopwatch w;
  const auto begin = clock::now();
  for (client_log& log : logs) {
    weft::go([&log, &wg, begin, ticks = a.n] {
      auto due = begin + log.offset;
      for (std::uint64_t i = 0; i < ticks; ++i) {
        weft::sleep_until(due += client_period);
        const auto now = clock::now();
        log.late[i] = now - due;
        if (now > due + client_patience) due = now;
        weft::go([&sample = log.spawn_to_run[i], &wg, now] {
          sample = clock::now() - now;
          spin_for(client_task_length);
          wg.done();
        });
      }
      wg.done();
    });
  }
  wg.wait();
  return summarize(w, logs);
}
const registered load70_workload{{"load70", 1'000, 50, load70}};

// n timers that wait all at once, and are stopped in another order than they were made in.
outcome timers_pending(const arguments& a) {
  std::vector<weft::timer> timers;
  timers.reserve(a.n);
  std::uint64_t state = 1;
  std::uint64_t stopped = 0;
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    timers.push_back(weft::after_func(1h + std::chrono::milliseconds(next_random(state) % 3'600'000), [] {}));
  }
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (std::uint64_t i = step; i < a.n; i += 2) stopped += timers[i].stop();
  }
  return w.stop(a.n, stopped == a.n);
}
const registered timers_pending_workload{{"timers_pending", 1'000'000, 100'000, timers_pending}};

}  // namespace
}  // namespace bench
