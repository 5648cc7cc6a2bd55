#include "harness.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>
#include <thread>

namespace bench {
namespace {

std::map<std::string, workload>& registry() {
  static std::map<std::string, workload> all;
  return all;
}

std::chrono::nanoseconds to_ns(const timeval& t) {
  return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
}

// A number of /proc/self/status, in bytes where the line is in kB.
double proc_status(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key + ":")) {
      const double value = std::strtod(line.c_str() + key.size() + 1, nullptr);
      return line.ends_with("kB") ? value * 1024 : value;
    }
  }
  return 0;
}

void print(const char* impl, const char* version, const workload& w, const arguments& a, const outcome& out) {
  std::printf(R"({"impl":"%s","version":"%s","workload":"%s","procs":%d,"n":%llu,"ops":%llu,"ns_per_op":%.6g,"ok":%s,)"
              R"("wall_ms":%.6g,"cpu_ms":%.6g,"rss":%.0f,"peak_rss":%.0f,"threads":%.0f)",
              impl, version, w.name, a.procs, static_cast<unsigned long long>(a.n),
              static_cast<unsigned long long>(out.ops), out.ns_per_op(), out.ok ? "true" : "false",
              milliseconds(out.wall), milliseconds(out.cpu), proc_status("VmRSS"), proc_status("VmHWM"),
              proc_status("Threads"));
  for (const auto& [key, value] : out.extra) std::printf(R"(,"%s":%.6g)", key.c_str(), value);
  std::printf("}\n");
  std::fflush(stdout);
}

void print_usage(std::FILE* to, const char* program) {
  std::fprintf(to, "usage: %s WORKLOAD [N] [--procs P]\n       %s --list\n", program, program);
}

int misunderstood(const char* program) {
  print_usage(stderr, program);
  return 64;
}

// The whole of text as a positive number of that type, or 0.
template <class Number>
Number positive_number(std::string_view text) {
  Number n = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && rest == text.data() + text.size() ? std::max(n, Number{0}) : 0;
}

}  // namespace

registered::registered(workload w) { registry().emplace(w.name, w); }

stopwatch::stopwatch() : cpu_(process_cpu_time()), wall_(clock::now()) {}

outcome stopwatch::stop(std::uint64_t ops, bool ok) const {
  const auto wall = clock::now() - wall_;
  return {.ops = ops, .wall = wall, .cpu = process_cpu_time() - cpu_, .ok = ok, .extra = {}};
}

std::chrono::nanoseconds process_cpu_time() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return to_ns(u.ru_utime) + to_ns(u.ru_stime);
}

double resident_bytes() { return proc_status("VmRSS"); }

double milliseconds(std::chrono::nanoseconds d) { return std::chrono::duration<double, std::milli>(d).count(); }

void add_percentiles(outcome& out, std::vector<std::chrono::nanoseconds>& samples, const std::string& of) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double p) {
    const auto i = std::min(static_cast<std::size_t>(p * static_cast<double>(samples.size())), samples.size() - 1);
    return std::chrono::duration<double, std::micro>(samples[i]).count();
  };
  out.extra.insert(out.extra.end(), {{of + "p50_us", at(.50)}, {of + "p99_us", at(.99)}, {of + "p999_us", at(.999)}});
}

double median_ns(outcome (*run)(const arguments&), const arguments& a, bool& ok) {
  std::array<double, 3> ns{};
  for (double& x : ns) {
    const outcome out = run(a);
    x = out.ns_per_op();
    ok = ok && out.ok;
  }
  std::sort(ns.begin(), ns.end());
  return ns[1];
}

outcome tasks_outcome(const stopwatch& w, const arguments& a, std::chrono::nanoseconds length) {
  outcome out = w.stop(a.n);
  out.extra = {{"over_ideal", out.wall / (length * static_cast<double>(a.n) / a.procs)}};
  return out;
}

outcome burst_outcome(const stopwatch& w, const arguments& a, std::chrono::nanoseconds bursts) {
  outcome out = w.stop(a.n * burst_tasks);
  out.wall = bursts;
  out.extra = {{"over_ideal", bursts / (burst_task_length * static_cast<double>(out.ops) / a.procs)}};
  return out;
}

client_log::client_log(std::uint64_t client, std::uint64_t ticks) : late(ticks), spawn_to_run(ticks) {
  std::uint64_t state = client;
  offset = std::chrono::nanoseconds(next_random(state) % static_cast<std::uint64_t>(std::chrono::nanoseconds(client_period).count()));
}

std::vector<client_log> make_client_logs(const arguments& a) {
  std::vector<client_log> logs;
  for (int c = 0; c < clients_per_proc * a.procs; ++c) logs.emplace_back(static_cast<std::uint64_t>(c), a.n);
  return logs;
}

outcome summarize(const stopwatch& w, std::vector<client_log>& logs) {
  std::vector<std::chrono::nanoseconds> late;
  std::vector<std::chrono::nanoseconds> spawn_to_run;
  for (const client_log& log : logs) {
    late.insert(late.end(), log.late.begin(), log.late.end());
    spawn_to_run.insert(spawn_to_run.end(), log.spawn_to_run.begin(), log.spawn_to_run.end());
  }
  outcome out = w.stop(late.size());
  add_percentiles(out, late, "late_");
  add_percentiles(out, spawn_to_run, "spawn_");
  out.ok = late.front() >= std::chrono::nanoseconds::zero() && spawn_to_run.front() > std::chrono::nanoseconds::zero();
  return out;
}

void spin_for(std::chrono::nanoseconds d) {
  for (const auto start = clock::now(); clock::now() - start < d;) {
  }
}

std::uint64_t nth_prime(std::uint64_t n) {
  for (std::uint64_t candidate = 2;; ++candidate) {
    bool prime = true;
    for (std::uint64_t d = 2; prime && d * d <= candidate; ++d) prime = candidate % d != 0;
    if (prime && --n == 0) return candidate;
  }
}

std::uint64_t fib_serial(std::uint64_t n) {
  std::uint64_t a = 0;
  std::uint64_t b = 1;
  for (; n > 0; --n) a = std::exchange(b, a + b);
  return a;
}

std::uint64_t power_of_ten_up_to(std::uint64_t n) {
  std::uint64_t p = 1;
  while (p * 10 <= n) p *= 10;
  return p;
}

int run_program(int argc, char** argv, const char* impl, const char* version, const entry& enter) {
  arguments a{.procs = static_cast<int>(std::thread::hardware_concurrency())};
  const char* name = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--list") == 0) {
      for (const auto& entry : registry()) std::puts(entry.first.c_str());
      return 0;
    }
    if (std::strcmp(argv[i], "--help") == 0) {
      print_usage(stdout, argv[0]);
      return 0;
    }
    if (std::strcmp(argv[i], "--procs") == 0 && i + 1 < argc) {
      a.procs = positive_number<int>(argv[++i]);
      if (a.procs == 0) return misunderstood(argv[0]);
    } else if (name == nullptr) {
      name = argv[i];
    } else if (a.n = positive_number<std::uint64_t>(argv[i]); a.n == 0) {
      return misunderstood(argv[0]);
    }
  }
  const auto found = name == nullptr ? registry().end() : registry().find(name);
  if (found == registry().end()) return misunderstood(argv[0]);
  const workload& w = found->second;
  if (a.n == 0) a.n = w.n;

  bool ok = false;
  enter(name, a.procs, [&] {
    if (w.warm_up > 0 && w.warm_up <= a.n) w.run({.n = w.warm_up, .procs = a.procs});
    const outcome out = w.run(a);
    ok = out.ok;
    print(impl, version, w, a, out);
  });
  return ok ? 0 : 1;
}

}  // namespace bench
