// What the C++ programs of bench/versus share: the command line, the stopwatch and the one JSON line each prints.
// A workload registers itself (`const bench::registered r{"yield", …}`); main() of each program calls run_program().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using clock = std::chrono::steady_clock;

struct arguments {
  std::uint64_t n = 0;  // what it counts is the workload's matter: see bench/README.md
  int procs = 1;
};

// How many operations took how long, and whether the result was right.
struct outcome {
  std::uint64_t ops = 0;
  std::chrono::nanoseconds wall{};
  std::chrono::nanoseconds cpu{};  // of the whole process
  bool ok = true;
  std::vector<std::pair<std::string, double>> extra;

  double ns_per_op() const { return static_cast<double>(wall.count()) / static_cast<double>(ops); }
};

struct workload {
  const char* name;
  std::uint64_t n;        // the default
  std::uint64_t warm_up;  // n of the warm-up; 0: none, because it would spoil what is measured
  outcome (*run)(const arguments&);
};

struct registered {
  explicit registered(workload w);
};

// Measures wall time and the CPU time of the whole process from its construction.
class stopwatch {
 public:
  stopwatch();
  outcome stop(std::uint64_t ops, bool ok = true) const;

 private:
  std::chrono::nanoseconds cpu_;
  clock::time_point wall_;
};

std::chrono::nanoseconds process_cpu_time();
double resident_bytes();

double milliseconds(std::chrono::nanoseconds d);

// Appends p50_us, p99_us and p999_us, with what the samples are of in front of it. Sorts the samples.
void add_percentiles(outcome& out, std::vector<std::chrono::nanoseconds>& samples, const std::string& of = "");

// Runs the workload three times and returns its median ns an operation; ok becomes false if one of them was wrong.
double median_ns(outcome (*run)(const arguments&), const arguments& a, bool& ok);

// Keeps a core busy for d of wall time, without a call into any runtime.
void spin_for(std::chrono::nanoseconds d);

constexpr std::uint64_t sum_below(std::uint64_t n) { return n * (n - 1) / 2; }
std::uint64_t nth_prime(std::uint64_t n);
std::uint64_t fib_serial(std::uint64_t n);
std::uint64_t power_of_ten_up_to(std::uint64_t n);

// The shape of the two workloads whose tasks spin (conserve) or whose main spins until the rest sleeps (spawn_to_run).
inline constexpr std::chrono::microseconds task_length{20};
inline constexpr std::chrono::microseconds quiet_time{300};
// steal_burst: so many short tasks at once, spawned by one.
inline constexpr int burst_tasks = 200;
inline constexpr std::chrono::microseconds burst_task_length{2};
// load70: a P's share of goroutines, each of which wakes every millisecond to spawn a task of this length: 70% of a core.
inline constexpr int clients_per_proc = 14;
inline constexpr std::chrono::microseconds client_task_length{50};
inline constexpr std::chrono::milliseconds client_period{1};
inline constexpr std::chrono::milliseconds client_patience{10};
// yield_n and spawn_n: so many yields or spawns, or one each if there are more goroutines.
inline constexpr std::uint64_t crowd_yields = 2'000'000;
inline constexpr std::uint64_t crowd_spawns = 1'000'000;
inline constexpr int select_sources = 16;
inline constexpr int writes_one_in = 100;  // read_mostly
inline constexpr int yielders = 8;
inline constexpr int contenders = 8;
inline constexpr int ring_members = 503;
inline constexpr int pipeline_stages = 100;

// The outcome of so many tasks that each spin for `length`: `over_ideal` is the time over what P cores would need without any
// overhead.
outcome tasks_outcome(const stopwatch& w, const arguments& a, std::chrono::nanoseconds length);
// The outcome of steal_burst: `over_ideal` is the bursts' time over what P cores would need without any overhead.
outcome burst_outcome(const stopwatch& w, const arguments& a, std::chrono::nanoseconds bursts);

// What the clients of load70 see, each on lines of its own. Every client starts somewhere in the first millisecond, at a
// place that is the same in every program.
struct alignas(64) client_log {
  client_log(std::uint64_t client, std::uint64_t ticks);
  std::chrono::nanoseconds offset;
  std::vector<std::chrono::nanoseconds> late;          // by how much it woke too late
  std::vector<std::chrono::nanoseconds> spawn_to_run;  // from before a task's spawn to its first line
};
std::vector<client_log> make_client_logs(const arguments& a);
// The outcome of load70: one operation is one task.
outcome summarize(const stopwatch& w, std::vector<client_log>& logs);

// The same naps in every program: a generator of three lines.
inline std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

// What read_mostly's lock guards: a reader must see both equal.
struct guarded_pair {
  std::uint64_t a = 0, b = 0;
};

// Brings a program's library up with so many Ps or threads, and calls body within it.
using entry = std::function<void(const std::string& workload, int procs, const std::function<void()>& body)>;

// main() of a program: parses `WORKLOAD [N] [--procs P]` or `--list`, and runs the workload inside `enter`. Returns the
// exit code.
int run_program(int argc, char** argv, const char* impl, const char* version, const entry& enter);

}  // namespace bench
