// The tour that ./demo runs: a million goroutines, spawned by one, run on all Ps, and what it took.
#include <sys/resource.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "usage.h"

namespace {

constexpr const char* usage = "usage: tour [N]  a million goroutines, or N\n";

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

double peak_memory_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// One line that is drawn over and over on a terminal, and not at all elsewhere.
class progress_line {
 public:
  explicit progress_line(std::uint64_t total) : total_(total), on_terminal_(isatty(STDOUT_FILENO) == 1) {}

  void draw(std::uint64_t spawned, std::uint64_t done) {
    if (!on_terminal_ || clock_type::now() < next_) return;
    next_ = clock_type::now() + std::chrono::milliseconds(50);
    draw_now(spawned, done);
  }

  void finish() {
    if (!on_terminal_) return;
    draw_now(total_, total_);
    std::puts("");
  }

 private:
  void draw_now(std::uint64_t spawned, std::uint64_t done) {
    std::printf("\r  spawned %3d%%   done %3d%%", percent(spawned), percent(done));
    std::fflush(stdout);
  }

  int percent(std::uint64_t n) const { return static_cast<int>(total_ == 0 ? 100 : n * 100 / total_); }

  std::uint64_t total_;
  bool on_terminal_;
  clock_type::time_point next_{};
};

void tour(std::uint64_t total) {
  std::printf("%llu goroutines on %d Ps (%d CPUs)\n", static_cast<unsigned long long>(total),
              weft::runtime::max_procs(), weft::runtime::num_cpu());

  const weft::runtime::sched_stats before = weft::runtime::read_sched_stats();
  const double memory_before = peak_memory_mib();
  const clock_type::time_point start = clock_type::now();

  std::atomic<std::uint64_t> done{0};
  progress_line progress(total);
  for (std::uint64_t i = 0; i < total; ++i) {
    weft::go([&done] { done.fetch_add(1, std::memory_order_release); });
    if (i % 4096 == 0) progress.draw(i, done.load(std::memory_order_relaxed));
  }
  while (done.load(std::memory_order_acquire) < total) {
    progress.draw(total, done.load(std::memory_order_relaxed));
    weft::yield();
  }

  const double seconds = seconds_since(start);
  const weft::runtime::sched_stats after = weft::runtime::read_sched_stats();
  progress.finish();

  const double each = total == 0 ? 0 : seconds * 1e9 / static_cast<double>(total);
  std::printf("  goroutines  %llu\n",
              static_cast<unsigned long long>(after.goroutines_created - before.goroutines_created));
  std::printf("  threads     %zu\n", weft::runtime::num_thread());
  std::printf("  steals      %llu, which moved %llu goroutines\n",
              static_cast<unsigned long long>(after.steals - before.steals),
              static_cast<unsigned long long>(after.stolen - before.stolen));
  std::printf("  time        %.3f s, %.0f ns each\n", seconds, each);
  std::printf("  memory      %.1f MiB at most, %.1f MiB before\n", peak_memory_mib(), memory_before);
}

// The whole of the text, in decimal digits.
bool parse(const char* text, std::uint64_t& number) {
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  return error == std::errc() && rest == end;
}

}  // namespace

int main(int argc, char** argv) {
  if (example::asked_for_help(argc, argv, usage)) return 0;
  std::uint64_t total = 1'000'000;
  if (argc > 2 || (argc == 2 && !parse(argv[1], total))) return example::misunderstood(usage);
  return weft::run([total] { tour(total); });
}
