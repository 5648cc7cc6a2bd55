#include "trace_summary.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace_file.h"

namespace tool {
namespace {

std::string duration(double ns) {
  char text[32];
  const auto [unit, scale] = ns < 1e3   ? std::pair("ns", 1.0)
                             : ns < 1e6 ? std::pair("us", 1e3)
                             : ns < 1e9 ? std::pair("ms", 1e6)
                                        : std::pair("s", 1e9);
  std::snprintf(text, sizeof text, "%.3g %s", ns / scale, unit);
  return text;
}

// What lies open on a track: the name of the slice, and since when.
struct open_slice {
  std::uint32_t name = 0;
  std::uint64_t since = 0;
};

struct processor_sum {
  std::uint64_t busy = 0, switches = 0, steals = 0, spawns = 0, readied = 0;
};

// Goroutines that were spawned at the same place, or bear the same name.
struct group {
  std::uint64_t count = 0;
  std::uint64_t running = 0;
  std::vector<std::uint64_t> delays;               // how long each time runnable until it ran
  std::map<std::string, std::uint64_t> elsewhere;  // by state
};

class summary {
 public:
  explicit summary(const trace_file& t) : trace_(t) {
    if (t.events.empty()) throw std::runtime_error("has no events");
    begin_ = t.events.front().when;
    end_ = t.events.back().when;
    for (const auto& [track, name] : t.tracks) {
      if (trace_file::is_goroutine(track)) ++groups_[kind_of(name)].count;
    }
    for (const track_event& e : t.events) add(e);
    for (const auto& [track, slice] : open_) {
      // How long the world stood in the end, for the end, is not known.
      if (!is_world(track)) close(track, slice, end_);
    }
  }

  void print() const {
    std::printf("trace of %s: %zu goroutines, %llu switches, %llu steals\n", duration(length()).c_str(),
                count_goroutines(), sum(&processor_sum::switches), sum(&processor_sum::steals));
    if (stops_ != 0)
      std::printf("the world was stopped %s, for %s\n", stops_ == 1 ? "once" : (std::to_string(stops_) + " times").c_str(),
                  duration(static_cast<double>(stopped_)).c_str());
    if (lost_ != 0) std::printf("%llu events were LOST: they came faster than they could be written\n", number(lost_));
    print_processors();
    print_groups();
  }

 private:
  static unsigned long long number(std::uint64_t n) { return n; }

  // "goroutine 7 main (server.cpp:12)" without the number.
  static std::string kind_of(const std::string& title) {
    const auto space = title.find(' ', title.find(' ') + 1);
    return space == title.npos ? "?" : title.substr(space + 1);
  }

  bool is_world(std::uint64_t track) const { return !trace_file::is_goroutine(track) && !trace_.is_processor(track); }

  double length() const { return static_cast<double>(std::max<std::uint64_t>(end_ - begin_, 1)); }

  unsigned long long sum(std::uint64_t processor_sum::*what) const {
    std::uint64_t n = 0;
    for (const auto& [track, p] : processors_) n += p.*what;
    return n;
  }

  std::size_t count_goroutines() const {
    std::size_t n = 0;
    for (const auto& [name, g] : groups_) n += g.count;
    return n;
  }

  void add(const track_event& e) {
    switch (e.type) {
      case track_event::begin:
        if (const auto at = open_.find(e.track); at != open_.end())
          close(e.track, at->second, e.when);  // its end was lost
        open_[e.track] = {e.name, e.when};
        if (trace_.is_processor(e.track)) ++processors_[e.track].switches;
        break;
      case track_event::end:
        if (const auto at = open_.find(e.track); at != open_.end()) {
          close(e.track, at->second, e.when);
          open_.erase(at);
        }
        break;
      case track_event::instant:
        add_instant(e);
        break;
    }
  }

  void add_instant(const track_event& e) {
    const std::string& name = trace_.name_of(e.name);
    processor_sum& p = processors_[e.track];
    if (name.starts_with("steal ")) ++p.steals;
    if (name == "spawn") ++p.spawns;
    if (name == "ready") ++p.readied;
    if (name == "events lost") lost_ += e.value;
  }

  void close(std::uint64_t track, const open_slice& s, std::uint64_t when) {
    const std::uint64_t took = when - s.since;
    if (trace_file::is_goroutine(track)) {
      add_state(track, trace_.name_of(s.name), took);
    } else if (trace_.is_processor(track)) {
      processors_[track].busy += took;
    } else {
      ++stops_;
      stopped_ += took;
    }
  }

  void add_state(std::uint64_t track, const std::string& state, std::uint64_t took) {
    group& g = groups_[kind_of(trace_.title_of(track))];
    if (state == "running") {
      g.running += took;
    } else if (state == "runnable") {
      g.delays.push_back(took);
    } else {
      g.elsewhere[state] += took;
    }
  }

  void print_processors() const {
    std::printf("\n%-16s %6s %10s %8s %8s %8s\n", "", "busy", "switches", "spawned", "readied", "steals");
    for (const auto& [track, p] : processors_) {
      std::printf("%-16s %5.1f%% %10llu %8llu %8llu %8llu\n", trace_.title_of(track).c_str(),
                  100 * static_cast<double>(p.busy) / length(), number(p.switches), number(p.spawns), number(p.readied),
                  number(p.steals));
    }
  }

  void print_groups() const {
    std::vector<std::pair<std::string, const group*>> sorted;
    for (const auto& [name, g] : groups_) sorted.emplace_back(name, &g);
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second->running > b.second->running; });
    std::printf("\n%9s %10s  %-31s  %s\n", "goroutines", "running", "runnable: p50, p99, longest",
                "what they are, and what else they did");
    for (const auto& [name, g] : sorted) print_group(name, *g);
  }

  void print_group(const std::string& name, const group& g) const {
    std::vector<std::uint64_t> delays = g.delays;
    std::sort(delays.begin(), delays.end());
    const auto at = [&](double part) {
      return delays.empty() ? std::string("-")
                            : duration(static_cast<double>(
                                  delays[static_cast<std::size_t>(part * static_cast<double>(delays.size() - 1))]));
    };
    std::printf("%9llu %10s  %9s, %9s, %9s  %s\n", number(g.count), duration(static_cast<double>(g.running)).c_str(),
                at(0.5).c_str(), at(0.99).c_str(), at(1).c_str(), name.c_str());
    std::vector<std::pair<std::uint64_t, std::string>> states;
    for (const auto& [state, took] : g.elsewhere) states.emplace_back(took, state);
    std::sort(states.rbegin(), states.rend());
    for (const auto& [took, state] : states)
      std::printf("%54s  %s: %s\n", "", state.c_str(), duration(static_cast<double>(took)).c_str());
  }

  const trace_file& trace_;
  std::uint64_t begin_ = 0, end_ = 0, stops_ = 0, stopped_ = 0, lost_ = 0;
  std::unordered_map<std::uint64_t, open_slice> open_;
  std::map<std::uint64_t, processor_sum> processors_;
  std::map<std::string, group> groups_;
};

}  // namespace

int summarize_trace(const std::string& path) {
  try {
    const trace_file t = trace_file::read(path);
    if (t.is_cut) std::fprintf(stderr, "weft trace: %s: its end is missing; up to there:\n", path.c_str());
    summary(t).print();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "weft trace: %s: %s\n", path.c_str(), e.what());
    return 1;
  }
}

}  // namespace tool
