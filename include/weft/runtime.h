// Looking inside the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft::runtime {

// The number of Ps: how many goroutines run at the same time.
int max_procs();

// Changes it while everything runs, and returns what it was; n < 1 changes nothing. From then on weft does not follow
// the machine's limits any more. Before the first start it is what the next start without a wish of its own uses.
int set_max_procs(int n);

// CPUs that this process may use (affinity).
int num_cpu();

// Goroutines that exist: running, waiting, or not yet started.
std::size_t num_goroutine();

// Threads of the runtime.
std::size_t num_thread();

// What the scheduler has done since the program began. Each figure is read without stopping anything, so figures of one
// call may belong to slightly different moments.
struct sched_stats {
  std::uint64_t goroutines_created = 0, goroutines_finished = 0;
  std::uint64_t goroutines = 0;            // alive
  std::uint64_t parks = 0, readied = 0, yields = 0;
  std::uint64_t picks = 0;                 // choices of a goroutine to run
  std::uint64_t switches_via_g0 = 0;       // switches by way of the scheduler's own stack; the others go straight
  std::uint64_t stacks_bound = 0;          // goroutines that got a stack from a cache or the system
  std::uint64_t stacks_inherited = 0;      // goroutines that ran on the warm stack of the one before
  std::uint64_t depth_first = 0;           // goroutines that ran before older ones, as the one that spawned them began to wait
  std::uint64_t joined_in_place = 0;       // goroutines that ran on the stack of the one that waited for them
  std::uint64_t stacks_total = 0, stacks_pooled = 0, stacks_returned = 0;  // carved, in shared pools, pages given back
  std::uint64_t overflows = 0;             // half run queues moved to the global queue
  std::uint64_t global_batches = 0, global_taken = 0, global_ticks = 0;    // fair shares taken, goroutines, 61-tick looks
  std::uint64_t steal_attempts = 0, steals = 0, stolen = 0;                // passes, successes, goroutines
  std::uint64_t runnext_steals = 0, runnext_spared = 0, steals_put_off = 0;
  std::uint64_t spins = 0, wakeups = 0, sleeps = 0;                        // Ms
  std::uint64_t futile_wakes = 0, missed_wakes = 0;
  std::uint64_t thread_moves = 0;          // threads moved to another core, because two that ran goroutines shared one
  std::uint64_t slices_ended = 0, preempted = 0;                           // by sysmon; goroutines that gave way
  std::uint64_t backlog_preemptions = 0;                                   // asked to, for filling the global queue too fast
  std::uint64_t preempted_running = 0, preempted_blocked = 0;              // Ps taken from code that made no call into weft:
                                                                           // it was running; it slept in the kernel
  std::uint64_t preempt_signals = 0, stops_in_place = 0;                   // sent; goroutines that one stopped where they were
  std::uint64_t rotations = 0;                                             // Ps handed straight to a stopped goroutine
  std::uint64_t stopped_in_place = 0, loose = 0;                           // now: stopped; running without a P
  std::uint64_t blocking_calls = 0, blocking_retaken = 0;                  // blocking(); those whose P was taken meanwhile,
  std::uint64_t blocking_handed_over = 0;                                  // and of these, those that gave it away at once
  std::uint64_t handoffs = 0;                                              // Ps given to another thread
  std::uint64_t homes_given = 0, homes_left = 0;                           // channels that got a P as their home, that left one
  std::uint64_t locked_turns = 0;                                          // Ps given to threads that goroutines are locked to
  std::uint64_t timers_started = 0, timers_run = 0, timers_stolen = 0;
  std::uint64_t netpolls = 0, netpoll_waits = 0, netpolls_by_sysmon = 0;   // looks at the network, sleeps in the poller
  std::uint64_t netpoll_events = 0, netpoll_readied = 0;                   // what came of them; goroutines that could go on
  std::uint64_t redistributed = 0;                                         // by sysmon, from behind one that computes on and on
  std::uint64_t world_stops = 0;
  std::uint64_t global_queue = 0;          // waiting there now
  std::uint64_t io_waiting = 0;            // goroutines and plain threads that wait for a descriptor now
  int procs = 0, idle_procs = 0, spinning_threads = 0;
  std::uint64_t threads = 0, threads_created = 0;
  std::uint64_t locked_threads = 0;        // threads that serve one goroutine only (lock_os_thread)
  std::uint64_t sysmon_rounds = 0;         // looks that sysmon has taken
};

sched_stats read_sched_stats();

// Every goroutine, in the form of Go's dumps: its number, what it waits for and for how long, its stack, and where it was
// created. The world stands still for a moment. With elfutils' libdw on the machine functions have files and lines;
// without it there are addresses that addr2line understands.
void dump_goroutines(std::ostream& out);

// counts[i] values v with buckets[i] <= v < buckets[i + 1]. The first boundary is 0, the last one infinity.
struct histogram {
  std::vector<std::uint64_t> counts;
  std::vector<double> buckets;

  std::uint64_t total() const;
  // The value below which the share q (0 to 1) of all lies, as far as the buckets tell: the upper end of one (the lower
  // end of the last). 0 if there are no values.
  double quantile(double q) const;
};

// One figure. The name has the unit behind a colon, as in Go: "/sched/latencies:seconds".
struct metric {
  std::string_view name;
  std::string_view description;
  std::variant<std::uint64_t, double, histogram> value;
  bool cumulative = false;  // only ever grows

  bool is_integer() const noexcept { return std::holds_alternative<std::uint64_t>(value); }
  bool is_float() const noexcept { return std::holds_alternative<double>(value); }
  bool is_histogram() const noexcept { return std::holds_alternative<weft::runtime::histogram>(value); }

  // std::bad_variant_access if it is of another kind; number() takes both kinds of number.
  std::uint64_t integer() const { return std::get<std::uint64_t>(value); }
  double number() const { return is_integer() ? static_cast<double>(integer()) : std::get<double>(value); }
  const weft::runtime::histogram& distribution() const { return std::get<weft::runtime::histogram>(value); }
};

// Everything there is, sorted by name: Go's names for what Go has too, "/weft/…" for the rest. Nothing is stopped for it.
std::vector<metric> read_metrics();

// The same in the text format that Prometheus reads.
void write_prometheus(std::ostream& out);
void write_prometheus(std::ostream& out, const std::vector<metric>& metrics);

}  // namespace weft::runtime
