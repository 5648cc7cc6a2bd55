// Sleepers.
#include <vector>

#include "fibers.h"

namespace bench {
namespace {

using namespace std::chrono_literals;

outcome sleepers(const arguments& a) {
  wait_group wg(static_cast<std::int64_t>(a.n));
  const stopwatch w;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    go([&wg, i] {
      std::uint64_t state = i;
      for (int nap = 0; nap < 5; ++nap) {
        boost::this_fiber::sleep_for(std::chrono::milliseconds(1 + next_random(state) % 100));
      }
      wg.done();
    });
  }
  wg.wait();
  return w.stop(5 * a.n);
}
const registered sleepers_workload{{"sleepers", 100'000, 0, sleepers}};

outcome sleep_lateness(const arguments& a) {
  std::vector<std::chrono::nanoseconds> samples(a.n);
  const stopwatch w;
  for (auto& sample : samples) {
    const auto began = clock::now();
    boost::this_fiber::sleep_for(1ms);
    sample = clock::now() - began - 1ms;
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
  wait_group wg(static_cast<std::int64_t>(logs.size() * (a.n + 1)));
  const stopwatch w;
  const auto begin = clock::now();
  for (client_log& log : logs) {
    go([&log, &wg, begin, ticks = a.n] {
      auto due = begin + log.offset;
      for (std::uint64_t i = 0; i < ticks; ++i) {
        boost::this_fiber::sleep_until(due += client_period);
        const auto now = clock::now();
        log.late[i] = now - due;
        if (now > due + client_patience) due = now;
        go([&sample = log.spawn_to_run[i], &wg, now] {
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

}  // namespace
}  // namespace bench
