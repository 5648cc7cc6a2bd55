// Foreign code under preemption: goroutines in malloc, stdio, iostreams, std::map, std::regex and exceptions, stopped in
// place again and again, wherever they are and whatever lock they hold. Each computes something that is checked; nothing
// may be corrupted, and nobody may wait for ever.
//
//   WEFT_STRESS_SECONDS=N   in all (6 if not set)
//   WEFT_SOAK=1             180 seconds
//
// WEFTDEBUG=slice=1 makes a slice one millisecond; it is read at the start, so the work is done in a process of its own.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/stress.h"
#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void allocate(std::uint32_t seed) {
  std::vector<std::unique_ptr<unsigned char[]>> blocks;
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = 1 + (seed = seed * 1664525 + 1013904223) % 5000;
    blocks.push_back(std::make_unique<unsigned char[]>(size));
    std::memset(blocks.back().get(), static_cast<int>(size & 0xff), size);
    sizes.push_back(size);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    require(blocks[i][0] == (sizes[i] & 0xff) && blocks[i][sizes[i] - 1] == (sizes[i] & 0xff), "a block of memory");
  }
}

void print(std::FILE* file, std::uint32_t seed) {
  for (int i = 0; i < 100; ++i) std::fprintf(file, "%u %d %s\n", seed, i, "a line of text that fills the buffer");
}

void stream(std::uint32_t seed) {
  std::ostringstream out;
  for (std::uint32_t i = 0; i < 100; ++i) out << seed + i << ' ' << 0.5 * i << '\n';
  std::istringstream in(out.str());
  for (std::uint32_t i = 0; i < 100; ++i) {
    std::uint32_t a = 0;
    double b = 0;
    in >> a >> b;
    require(a == seed + i && b == 0.5 * i, "a stream");
  }
}

void map(std::uint32_t seed) {
  std::map<std::uint32_t, std::string> m;
  for (std::uint32_t i = 0; i < 200; ++i) m[(i * 7919 + seed) % 1000] = std::to_string(i);
  std::uint32_t last = 0;
  for (const auto& [key, value] : m) {
    require(key >= last && !value.empty(), "a map");
    last = key;
  }
}

void match(std::uint32_t seed) {
  static const std::regex pattern("([a-z]+)([0-9]+)");
  std::smatch parts;
  const std::string text = "goroutine" + std::to_string(seed);
  require(std::regex_match(text, parts, pattern) && parts[2] == std::to_string(seed), "a match");
}

int thrown(int depth, std::uint32_t seed) {
  struct counted {
    int& n;
    ~counted() { ++n; }
  };
  int unwound = 0;
  try {
    counted c{unwound};
    if (depth == 0) throw std::runtime_error(std::to_string(seed));
    return thrown(depth - 1, seed) + 1;
  } catch (const std::runtime_error& e) {
    require(unwound == 1 && e.what() == std::to_string(seed), "an exception");
    if (depth < 3) throw;
    return 0;
  }
}

void compute(std::uint32_t seed) {
  volatile std::uint32_t x = seed;
  for (int i = 0; i < 200'000; ++i) x = x * 1664525 + 1013904223;
}

const test::scenario torture("torture", [] {
  const int procs = std::atoi(std::getenv("TORTURE_PROCS"));
  const auto end = clock::now() + std::chrono::milliseconds(test::number_from_environment("TORTURE_MS", 1000));
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  std::atomic<std::uint64_t> rounds{0};
  weft::run(
      [&] {
        weft::wait_group wg;
        for (std::uint32_t g = 0; g < 24; ++g) {
          wg.go([&, g] {
            for (std::uint32_t seed = g * 1000; clock::now() < end; ++seed) {
              switch ((seed + g) % 7) {
                case 0: allocate(seed); break;
                case 1: print(file.get(), seed); break;
                case 2: stream(seed); break;
                case 3: map(seed); break;
                case 4: match(seed); break;
                case 5: thrown(3, seed); break;
                case 6: compute(seed); break;
              }
              if (seed % 64 == 0) weft::yield();
              rounds.fetch_add(1, std::memory_order_relaxed);
            }
          });
        }
        wg.wait();
      },
      {.procs = procs});
  const auto s = weft::runtime::read_sched_stats();
  std::printf("procs %d: %llu rounds, %llu stops in place, %llu rotations, %llu threads\n", procs,
              static_cast<unsigned long long>(rounds.load()), static_cast<unsigned long long>(s.stops_in_place),
              static_cast<unsigned long long>(s.rotations), static_cast<unsigned long long>(s.threads));
});

TEST(preempt_torture, foreign_code_survives_being_stopped_anywhere) {
  for (const int procs : {1, 2, 8}) {
    const auto length = test::stress_duration(6, 180) / 3;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(length).count();
    const test::outcome end = torture.run({{"WEFTDEBUG", "slice=1"},
                                           {"TORTURE_PROCS", std::to_string(procs)},
                                           {"TORTURE_MS", std::to_string(ms)}},
                                          length + 180s);
    EXPECT_FALSE(end.died()) << end;
    EXPECT_NE(end.out.find("rounds"), std::string::npos) << end;
    std::printf("%s", end.out.c_str());
  }
}

}  // namespace
