// read_metrics(): a table of names over what the scheduler counts anyway.
#include <weft/runtime.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <ostream>

#include "sched/scheduler.h"
#include "sched/stack.h"

namespace weft::runtime {
namespace {

using sched::sched;

struct by_state {
  std::uint64_t running = 0, runnable = 0, in_calls = 0, waiting = 0;
};

// From what is at hand without looking at any goroutine: the sums need not match to the last one.
by_state count_states(std::uint64_t goroutines, std::uint64_t stopped_in_place) {
  by_state n;
  for (const gmp::machine* m = sched.all_ms.load(std::memory_order_acquire); m != nullptr; m = m->all_link) {
    if (m->curg == nullptr) continue;
    (m->revoked.load(std::memory_order_relaxed) == gmp::p_in_call ? n.in_calls : n.running) += 1;
  }
  n.running -= std::min(n.running, stopped_in_place);  // the global queue counts them
  n.runnable = sched.global_size.load(std::memory_order_relaxed);
  for (int i = 0; i < sched.procs.load(std::memory_order_acquire); ++i) {
    const gmp::processor* p = weft::sched::processor_at(i);
    n.runnable += p->ring.size() + (p->runnext.load(std::memory_order_relaxed) != nullptr ? 1 : 0);
  }
  const std::uint64_t others = n.running + n.runnable + n.in_calls;
  n.waiting = goroutines > others ? goroutines - others : 0;
  return n;
}

histogram to_seconds(const base::time_histogram& h) {
  histogram result;
  for (std::size_t i = 0; i < base::time_histogram::buckets; ++i) {
    result.buckets.push_back(static_cast<double>(base::time_histogram::begin_of(i)) / 1e9);
    result.counts.push_back(h.count(i));
  }
  result.buckets.push_back(std::numeric_limits<double>::infinity());
  return result;
}

struct counter_name {
  std::string_view name;
  std::string_view description;
  std::uint64_t sched_stats::* member;
};

// What only grows, as sched_stats has it.
constexpr counter_name counters[] = {
    {"/sched/goroutines-created:goroutines", "Goroutines started since the program began.", &sched_stats::goroutines_created},
    {"/weft/blocking/calls:calls", "Calls of blocking() begun.", &sched_stats::blocking_calls},
    {"/weft/blocking/handed-over:calls", "Blocking calls that gave their P away at once.", &sched_stats::blocking_handed_over},
    {"/weft/blocking/retaken:calls", "Blocking calls whose P was taken meanwhile.", &sched_stats::blocking_retaken},
    {"/weft/channels/homes-given:events", "Channels that got a P as their home.", &sched_stats::homes_given},
    {"/weft/channels/homes-left:events", "Channels that were sent away from their home by another P.", &sched_stats::homes_left},
    {"/weft/goroutines-finished:goroutines", "Goroutines that have ended.", &sched_stats::goroutines_finished},
    {"/weft/handoffs:events", "Ps given from one thread to another.", &sched_stats::handoffs},
    {"/weft/parks:events", "Times that a goroutine began to wait.", &sched_stats::parks},
    {"/weft/preemptions/cooperative:events", "Goroutines that gave way at a call into weft.", &sched_stats::preempted},
    {"/weft/netpoll/by-sysmon:events", "Looks at the network by sysmon, because nobody else did.", &sched_stats::netpolls_by_sysmon},
    {"/weft/netpoll/events:events", "Events that the poller reported.", &sched_stats::netpoll_events},
    {"/weft/netpoll/looks:events", "Looks at the network without waiting.", &sched_stats::netpolls},
    {"/weft/netpoll/readied:goroutines", "Goroutines that the poller made runnable.", &sched_stats::netpoll_readied},
    {"/weft/netpoll/waits:events", "Sleeps of a thread in the poller.", &sched_stats::netpoll_waits},
    {"/weft/preemptions/async:events", "Goroutines stopped in place by a signal.", &sched_stats::stops_in_place},
    {"/weft/preemptions/backlog:events", "Goroutines asked to give way for filling the global queue too fast.", &sched_stats::backlog_preemptions},
    {"/weft/preemptions/blocked:events", "Ps taken from code that slept in the kernel.", &sched_stats::preempted_blocked},
    {"/weft/preemptions/rotations:events", "Ps handed straight to a goroutine that was stopped in place.", &sched_stats::rotations},
    {"/weft/preemptions/running:events", "Ps taken from code that computed on and on.", &sched_stats::preempted_running},
    {"/weft/preemptions/signals:events", "Signals sent to stop a goroutine in place.", &sched_stats::preempt_signals},
    {"/weft/preemptions/requested:events", "Time slices that sysmon ended.", &sched_stats::slices_ended},
    {"/weft/readied:events", "Times that a waiting goroutine was made runnable.", &sched_stats::readied},
    {"/weft/runqueue/depth-first:goroutines", "Goroutines that ran before older ones, as the one that spawned them began to wait.", &sched_stats::depth_first},
    {"/weft/runqueue/global-batches:events", "Fair shares taken from the global queue.", &sched_stats::global_batches},
    {"/weft/runqueue/global-taken:goroutines", "Goroutines taken from the global queue.", &sched_stats::global_taken},
    {"/weft/runqueue/global-ticks:events", "Looks at the global queue on every 61st tick that found one.", &sched_stats::global_ticks},
    {"/weft/runqueue/overflows:events", "Half run queues moved to the global queue.", &sched_stats::overflows},
    {"/weft/runqueue/redistributed:goroutines", "Goroutines moved from behind one that computes on and on.", &sched_stats::redistributed},
    {"/weft/spins:events", "Times that a thread began to look for work.", &sched_stats::spins},
    {"/weft/stacks/bound:stacks", "Goroutines that got a stack from a cache or the system.", &sched_stats::stacks_bound},
    {"/weft/stacks/inherited:stacks", "Goroutines that ran on the warm stack of the one before.", &sched_stats::stacks_inherited},
    {"/weft/stacks/lent:stacks", "Goroutines that ran on the stack of the one that waited for them.", &sched_stats::joined_in_place},
    {"/weft/stacks/returned:stacks", "Stacks whose pages were given back to the system.", &sched_stats::stacks_returned},
    {"/weft/steals/attempts:events", "Passes over all Ps in search of work.", &sched_stats::steal_attempts},
    {"/weft/steals/done:events", "Passes that found some.", &sched_stats::steals},
    {"/weft/steals/goroutines:goroutines", "Goroutines stolen.", &sched_stats::stolen},
    {"/weft/steals/put-off:events", "Times that a thief left goroutines to their P for a while, as stealing some had not paid.", &sched_stats::steals_put_off},
    {"/weft/steals/runnext:events", "Goroutines stolen that were next in line.", &sched_stats::runnext_steals},
    {"/weft/steals/runnext-spared:events", "Goroutines next in line that their own P was about to run.", &sched_stats::runnext_spared},
    {"/weft/switches/choices:events", "Choices of a goroutine to run.", &sched_stats::picks},
    {"/weft/switches/via-g0:events", "Switches by way of the scheduler's own stack.", &sched_stats::switches_via_g0},
    {"/weft/sysmon/rounds:events", "Looks that sysmon has taken at everything.", &sched_stats::sysmon_rounds},
    {"/weft/threads/created:threads", "Threads that the runtime has started.", &sched_stats::threads_created},
    {"/weft/threads/locked-turns:events", "Ps given to threads that goroutines are locked to.", &sched_stats::locked_turns},
    {"/weft/threads/moved:events", "Threads moved to another core, because two that ran goroutines shared one.", &sched_stats::thread_moves},
    {"/weft/threads/sleeps:events", "Times that a thread without work went to sleep.", &sched_stats::sleeps},
    {"/weft/threads/wakeups:events", "Times that a thread was woken to look for work.", &sched_stats::wakeups},
    {"/weft/threads/wakeups-futile:events", "Of these, those that found nothing left.", &sched_stats::futile_wakes},
    {"/weft/threads/wakeups-missed:events", "Goroutines that sysmon had to wake somebody for.", &sched_stats::missed_wakes},
    {"/weft/timers/run:timers", "Timers whose time had come.", &sched_stats::timers_run},
    {"/weft/timers/started:timers", "Timers put into a heap.", &sched_stats::timers_started},
    {"/weft/timers/stolen:events", "Runs of another P's due timers.", &sched_stats::timers_stolen},
    {"/weft/world-stops:events", "Times that the world was stopped.", &sched_stats::world_stops},
    {"/weft/yields:events", "Calls of yield().", &sched_stats::yields},
};

class list {
 public:
  void count(std::string_view name, std::string_view description, std::uint64_t n) { add({name, description, n, true}); }
  void gauge(std::string_view name, std::string_view description, std::uint64_t n) { add({name, description, n, false}); }
  void total_seconds(std::string_view name, std::string_view description, std::int64_t ns) {
    add({name, description, static_cast<double>(ns) / 1e9, true});
  }
  void times(std::string_view name, std::string_view description, const base::time_histogram& h) {
    add({name, description, to_seconds(h), true});
  }
  std::vector<metric> sorted() && {
    std::vector<metric> result;
    result.reserve(all_.size());
    for (auto& [name, m] : all_) result.push_back(std::move(m));
    return result;
  }

 private:
  void add(metric m) { all_.emplace(m.name, std::move(m)); }

  std::map<std::string_view, metric> all_;
};

std::uint64_t timers_pending() {
  std::uint64_t n = 0;
  for (int i = 0; i < sched.procs.load(std::memory_order_acquire); ++i) n += weft::sched::processor_at(i)->timers.size();
  return n;
}

void add_stacks(list& l, const sched_stats& s) {
  const auto bytes = static_cast<std::uint64_t>(weft::sched::default_stack_size());
  l.gauge("/weft/stacks/total:stacks", "Stacks carved from the system's memory.", s.stacks_total);
  l.gauge("/weft/stacks/cached:stacks", "Stacks in the shared pools.", s.stacks_pooled);
  l.gauge("/weft/stacks/in-use:stacks", "Stacks of goroutines, and in the caches of Ps.", s.stacks_total - s.stacks_pooled);
  l.gauge("/weft/stacks/size:bytes", "Bytes reserved for a stack of the default size.", bytes);
  l.gauge("/weft/stacks/reserved:bytes", "Address space reserved for stacks, if all are of the default size.", s.stacks_total * bytes);
}

// ---- Prometheus ----

// "/sched/goroutines/not-in-go:goroutines" -> "weft_sched_goroutines_not_in_go_goroutines"
std::string prometheus_name(const metric& m) {
  std::string_view name = m.name;
  if (name.starts_with("/weft/")) name.remove_prefix(5);
  std::string result = "weft";
  for (const char c : name) result += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  if (m.cumulative && !m.is_histogram()) result += "_total";
  return result;
}

// As many digits as it takes: of a sum that has grown large, a stream's six would leave no change to be seen.
std::string digits(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

void add_distribution(std::string& out, const std::string& name, const histogram& h) {
  std::uint64_t below = 0;
  double sum = 0;
  for (std::size_t i = 0; i < h.counts.size(); ++i) {
    below += h.counts[i];
    const double upper = h.buckets[i + 1];
    const bool last = i + 1 == h.counts.size();
    // Middles of buckets: the exact sum is not known.
    sum += static_cast<double>(h.counts[i]) * (last ? h.buckets[i] : (h.buckets[i] + upper) / 2);
    // Powers of two, whatever has been counted: Prometheus takes a boundary that comes later for one that has just begun.
    if (last || i % base::time_histogram::parts == 0) {
      out += name + "_bucket{le=\"" + (last ? "+Inf" : digits(upper)) + "\"} " + std::to_string(below) + "\n";
    }
  }
  out += name + "_sum " + digits(sum) + "\n" + name + "_count " + std::to_string(below) + "\n";
}

std::string as_text(const std::vector<metric>& metrics) {
  std::string out;
  for (const metric& m : metrics) {
    const std::string name = prometheus_name(m);
    out += "# HELP " + name + " " + std::string(m.description) + "\n# TYPE " + name + " " +
           (m.is_histogram() ? "histogram" : m.cumulative ? "counter" : "gauge") + "\n";
    if (m.is_histogram()) {
      add_distribution(out, name, m.distribution());
    } else {
      out += name + " " + (m.is_integer() ? std::to_string(m.integer()) : digits(m.number())) + "\n";
    }
  }
  return out;
}

}  // namespace

std::uint64_t histogram::total() const {
  std::uint64_t n = 0;
  for (const std::uint64_t c : counts) n += c;
  return n;
}

double histogram::quantile(double q) const {
  const auto all = static_cast<double>(total());
  double below = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    below += static_cast<double>(counts[i]);
    if (counts[i] != 0 && below >= q * all) return i + 1 == counts.size() ? buckets[i] : buckets[i + 1];
  }
  return 0;
}

std::vector<metric> read_metrics() {
  const sched_stats s = read_sched_stats();
  const by_state n = count_states(s.goroutines, s.stopped_in_place);
  list l;
  for (const counter_name& c : counters) l.count(c.name, c.description, s.*c.member);
  l.gauge("/sched/gomaxprocs:threads", "Ps: how many goroutines can run at the same time.", static_cast<std::uint64_t>(s.procs));
  l.gauge("/sched/goroutines:goroutines", "Goroutines that exist.", s.goroutines);
  l.gauge("/sched/goroutines/not-in-go:goroutines", "Goroutines in a declared blocking call.", n.in_calls);
  l.gauge("/sched/goroutines/runnable:goroutines", "Goroutines that could run but do not.", n.runnable);
  l.gauge("/sched/goroutines/running:goroutines", "Goroutines that run.", n.running);
  l.gauge("/sched/goroutines/waiting:goroutines", "Goroutines that wait for something.", n.waiting);
  l.gauge("/sched/threads/total:threads", "Threads of the runtime.", s.threads);
  l.times("/sched/latencies:seconds", "How long goroutines that were woken were runnable before they ran (one in 256).",
          gmp::latencies);
  l.times("/sched/pauses/stopping/other:seconds", "From the wish to stop the world until it stood.", sched.stopping_times);
  l.times("/sched/pauses/total/other:seconds", "From the wish to stop the world until it went on.", sched.pause_times);
  l.total_seconds("/sync/mutex/wait/total:seconds", "Time that goroutines and threads were parked in mutex::lock().",
                  sched.mutex_wait_ns.load(std::memory_order_relaxed));
  l.gauge("/weft/goroutines/loose:goroutines", "Goroutines that compute without a P.", s.loose);
  l.gauge("/weft/goroutines/stopped-in-place:goroutines", "Goroutines stopped in place, each with its thread.", s.stopped_in_place);
  l.gauge("/weft/netpoll/waiting:goroutines", "Goroutines and threads that wait for a descriptor.", s.io_waiting);
  l.gauge("/weft/procs/idle:threads", "Ps without work.", static_cast<std::uint64_t>(std::max(s.idle_procs, 0)));
  l.gauge("/weft/runqueue/global:goroutines", "Goroutines in the global queue.", s.global_queue);
  l.gauge("/weft/threads/locked:threads", "Threads that serve one goroutine only (lock_os_thread).", s.locked_threads);
  l.gauge("/weft/threads/spinning:threads", "Threads that look for work.", static_cast<std::uint64_t>(std::max(s.spinning_threads, 0)));
  l.gauge("/weft/timers/pending:timers", "Timers in the heaps.", timers_pending());
  add_stacks(l, s);
  return std::move(l).sorted();
}

// In one piece, and not as the stream writes numbers: it may have a locale with points between the thousands.
void write_prometheus(std::ostream& out, const std::vector<metric>& metrics) { out << as_text(metrics); }

void write_prometheus(std::ostream& out) { write_prometheus(out, read_metrics()); }

}  // namespace weft::runtime
