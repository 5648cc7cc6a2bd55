// read_metrics and its text form.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <locale>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "support/anywhere.h"
#include "support/one_slice.h"

namespace {

using namespace std::chrono_literals;
using weft::runtime::metric;

metric read(std::string_view name) {
  for (const metric& m : weft::runtime::read_metrics()) {
    if (m.name == name) return m;
  }
  ADD_FAILURE() << "no metric " << name;
  return {};
}

std::uint64_t integer(std::string_view name) { return read(name).integer(); }

TEST(metrics, have_gos_names_and_units_and_are_sorted) {
  weft::run([] {
    const auto all = weft::runtime::read_metrics();
    std::set<std::string_view> names;
    for (const metric& m : all) {
      EXPECT_TRUE(std::regex_match(std::string(m.name), std::regex("(/[a-z0-9-]+)+:[a-z]+"))) << m.name;
      EXPECT_FALSE(m.description.empty()) << m.name;
      EXPECT_TRUE(names.insert(m.name).second) << m.name << " is there twice";
    }
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto& a, auto& b) { return a.name < b.name; }));
    for (const char* name :
         {"/sched/goroutines:goroutines", "/sched/gomaxprocs:threads", "/sched/latencies:seconds",
          "/sched/goroutines/running:goroutines", "/sched/goroutines/runnable:goroutines",
          "/sched/goroutines/waiting:goroutines", "/sched/goroutines/not-in-go:goroutines",
          "/sched/goroutines-created:goroutines", "/sched/threads/total:threads", "/sched/pauses/total/other:seconds",
          "/sched/pauses/stopping/other:seconds", "/sync/mutex/wait/total:seconds"}) {
      EXPECT_TRUE(names.contains(name)) << name;
    }
  });
}

TEST(metrics, are_of_three_kinds_and_say_so_when_asked_for_another) {
  const metric count = read("/sched/goroutines:goroutines");
  EXPECT_TRUE(count.is_integer());
  EXPECT_EQ(count.number(), static_cast<double>(count.integer()));
  EXPECT_THROW(count.distribution(), std::bad_variant_access);
  const metric seconds = read("/sync/mutex/wait/total:seconds");
  EXPECT_TRUE(seconds.is_float());
  EXPECT_THROW(seconds.integer(), std::bad_variant_access);
  const metric times = read("/sched/latencies:seconds");
  ASSERT_TRUE(times.is_histogram());
  const auto& h = times.distribution();
  EXPECT_EQ(h.buckets.size(), h.counts.size() + 1);
  EXPECT_TRUE(std::is_sorted(h.buckets.begin(), h.buckets.end()));
  EXPECT_TRUE(std::isinf(h.buckets.back()));
  EXPECT_THROW(times.number(), std::bad_variant_access);
}

TEST(metrics, count_goroutines_by_state) {
  weft::run(
      [] {
        test::await_solitude();
        const auto before = integer("/sched/goroutines-created:goroutines");
        weft::chan<int> gate;
        test::crew crew;
        const auto parks = test::parks();
        for (int i = 0; i < 10; ++i) crew.goroutine([&] { gate.recv(); });
        test::await_parks(parks + 10);
        EXPECT_EQ(integer("/sched/goroutines-created:goroutines"), before + 10);
        EXPECT_EQ(integer("/sched/goroutines:goroutines"), 11u);
        EXPECT_EQ(integer("/sched/goroutines/waiting:goroutines"), 10u);
        EXPECT_EQ(integer("/sched/goroutines/running:goroutines"), 1u);
        EXPECT_EQ(integer("/sched/gomaxprocs:threads"), 1u);
        const auto runnable = test::in_one_slice([] {
          test::crew others;
          for (int i = 0; i < 5; ++i) others.goroutine([] {});
          return integer("/sched/goroutines/runnable:goroutines");
        });
        EXPECT_EQ(runnable, 5u);
        gate.close();
        crew.wait();
      },
      {.procs = 1});
}

TEST(metrics, count_goroutines_in_blocking_calls) {
  weft::run(
      [] {
        std::atomic<bool> inside = false, over = false;
        test::crew crew;
        crew.goroutine([&] {
          weft::blocking([&] {
            inside = true;
            while (!over) std::this_thread::sleep_for(1ms);
          });
        });
        test::await([&] { return inside.load(); });
        EXPECT_EQ(integer("/sched/goroutines/not-in-go:goroutines"), 1u);
        EXPECT_GE(integer("/weft/blocking/calls:calls"), 1u);
        over = true;
      },
      {.procs = 2});
}

TEST(metrics, know_how_long_goroutines_waited_for_their_turn) {
  weft::run(
      [] {
        const auto before = read("/sched/latencies:seconds").distribution().total();
        weft::chan<int> a, b;
        test::crew crew;
        crew.goroutine([&] {
          for (int i : a) b.send(i);
        });
        for (int i = 0; i < 20'000; ++i) {
          a.send(i);
          b.recv();
        }
        a.close();
        crew.wait();
        const metric m = read("/sched/latencies:seconds");
        EXPECT_GE(m.distribution().total(), before + 20);
        EXPECT_GT(m.distribution().quantile(0.5), 0);
        EXPECT_LT(m.distribution().quantile(0.5), 1);
        EXPECT_LE(m.distribution().quantile(0.5), m.distribution().quantile(0.99));
      },
      {.procs = 1});
}

TEST(metrics, add_up_the_time_spent_waiting_for_mutexes) {
  weft::run(
      [] {
        const double before = read("/sync/mutex/wait/total:seconds").number();
        weft::mutex m;
        m.lock();
        test::crew crew;
        const auto parks = test::parks();
        crew.goroutine([&] {
          m.lock();
          m.unlock();
        });
        test::await_parks(parks + 1);
        weft::sleep_for(20ms);
        m.unlock();
        crew.wait();
        EXPECT_GE(read("/sync/mutex/wait/total:seconds").number(), before + 0.02);
      },
      {.procs = 2});
}

TEST(metrics, can_be_read_by_many_at_once_while_everything_moves) {
  weft::run(
      [] {
        std::atomic<bool> over = false;
        test::crew busy;
        for (int i = 0; i < 4; ++i) {
          busy.goroutine([&] {
            weft::chan<int> c;
            while (!over) {
              weft::go([=] { c.send(1); });
              c.recv();
              weft::sleep_for(1us);
            }
          });
        }
        {
          test::crew readers;
          for (int i = 0; i < 4; ++i) {
            readers.either(i, [] {
              std::uint64_t created = 0;
              for (int k = 0; k < 50; ++k) {
                const auto now = integer("/sched/goroutines-created:goroutines");
                EXPECT_GE(now, created);
                created = now;
                std::ostringstream text;
                weft::runtime::write_prometheus(text);
              }
            });
          }
        }
        over = true;
      },
      {.procs = 4});
}

TEST(prometheus_text, has_a_type_and_a_value_for_every_metric) {
  weft::run([] {
    std::ostringstream out;
    weft::runtime::write_prometheus(out);
    const std::string text = out.str();
    EXPECT_NE(text.find("# TYPE weft_sched_goroutines_goroutines gauge\nweft_sched_goroutines_goroutines 1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("# TYPE weft_parks_events_total counter\nweft_parks_events_total "), std::string::npos);
    EXPECT_NE(text.find("# TYPE weft_sched_latencies_seconds histogram\n"), std::string::npos);
    EXPECT_NE(text.find("weft_sched_latencies_seconds_bucket{le=\"+Inf\"} "), std::string::npos);
    std::istringstream lines(text);
    const std::regex sample("[a-zA-Z_:][a-zA-Z0-9_:]*(\\{le=\"[^\"]+\"\\})? [-+0-9.einf]+");
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(line.starts_with("# ") || std::regex_match(line, sample)) << line;
    }
  });
}

// As a German would have them.
struct thousands : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(prometheus_text, is_the_same_whatever_the_stream_does_with_numbers_and_keeps_all_digits) {
  const std::vector<metric> some = {{"/a:events", "An integer.", std::uint64_t{1234567}, true},
                                    {"/b:seconds", "A float.", 1234567.0625, true}};
  std::ostringstream out;
  out.imbue(std::locale(std::locale::classic(), new thousands));
  out << std::hex << std::showbase;
  weft::runtime::write_prometheus(out, some);
  EXPECT_NE(out.str().find("\nweft_a_events_total 1234567\n"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("\nweft_b_seconds_total 1234567.0625\n"), std::string::npos) << out.str();
}

std::vector<std::string> boundaries(const metric& m) {
  std::ostringstream out;
  weft::runtime::write_prometheus(out, {m});
  std::vector<std::string> result;
  const std::string text = out.str();
  const std::regex bucket("_bucket\\{le=\"([^\"]+)\"\\}");
  for (std::sregex_iterator i(text.begin(), text.end(), bucket), end; i != end; ++i) result.push_back((*i)[1]);
  return result;
}

TEST(prometheus_text, has_the_same_boundaries_whatever_was_counted) {
  metric m = read("/sched/latencies:seconds");
  const auto before = boundaries(m);
  EXPECT_GE(before.size(), 30u);
  for (auto& n : std::get<weft::runtime::histogram>(m.value).counts) n += 1000;
  EXPECT_EQ(boundaries(m), before);
}

TEST(metrics, count_what_threads_timers_and_sysmon_do) {
  weft::run(
      [] {
        const auto turns = integer("/weft/threads/locked-turns:events"), run = integer("/weft/timers/run:timers");
        const auto locked = integer("/weft/threads/locked:threads");
        weft::chan<int> gate;
        test::crew crew;
        const auto parks = test::parks();
        crew.goroutine([&] {
          weft::lock_os_thread();
          gate.recv();
          EXPECT_EQ(integer("/weft/threads/locked:threads"), locked + 1);
          weft::unlock_os_thread();
        });
        test::await_parks(parks + 1);
        weft::sleep_for(1ms);
        gate.close();
        crew.wait();
        EXPECT_EQ(integer("/weft/threads/locked:threads"), locked);
        EXPECT_GE(integer("/weft/threads/locked-turns:events"), turns + 1);
        EXPECT_GE(integer("/weft/timers/run:timers"), run + 1);
        EXPECT_GE(integer("/weft/threads/created:threads"), integer("/sched/threads/total:threads"));
        const auto rounds = integer("/weft/sysmon/rounds:events");
        test::await([=] { return integer("/weft/sysmon/rounds:events") > rounds; });
      },
      {.procs = 2});
}

TEST(metrics, know_that_also_of_those_that_sockets_and_plain_threads_woke) {
  weft::run(
      [] {
        const auto timed = [] { return read("/sched/latencies:seconds").distribution().total(); };
        const auto before = timed();
        weft::net::listener listener = weft::net::listen_tcp("127.0.0.1:0");
        weft::net::conn out = weft::net::dial_tcp(listener.local_address().to_string());
        weft::net::conn in = listener.accept();
        test::crew crew;
        crew.goroutine([&] {
          std::array<std::byte, 1> byte;
          while (in.read(byte) == 1) in.write(byte);
        });
        std::array<std::byte, 1> byte{};
        for (int i = 0; i < 2'000; ++i) {
          out.write(byte);
          out.read(byte);
        }
        out.close();
        crew.wait();
        const auto after_sockets = timed();
        EXPECT_GT(after_sockets, before);

        weft::chan<int> to, back;
        std::thread thread([&] {
          do to.send(1);
          while (back.recv());
        });
        test::await([&] {  // one in 256 of those that waited when the thread sent
          to.recv();
          if (timed() == after_sockets) return back.send(1), false;
          return back.close(), true;
        });
        thread.join();
      },
      {.procs = 2});
}

}  // namespace
