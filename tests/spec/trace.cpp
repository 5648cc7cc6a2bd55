// The execution trace.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "support/await.h"
#include "support/folder.h"
#include "support/traced.h"

namespace {

using namespace std::chrono_literals;
using tool::trace_file;

// What f does in a run() of its own, from the beginning of the trace to its end.
template <class F>
trace_file traced(F f, int procs = 2) {
  const test::folder tmp;
  const std::string file = tmp / "trace";
  weft::run(
      [&] {
        weft::trace::start(file);
        f();
        weft::trace::stop();
      },
      {.procs = procs});
  trace_file t = trace_file::read(file);
  EXPECT_FALSE(test::has_losses(t));
  test::expect_consistent(t);
  return t;
}

bool contains(const std::set<std::string>& states, std::initializer_list<const char*> wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const char* s) { return states.contains(s); });
}

void await_dump(const std::string& text) {
  test::await([&] {
    std::ostringstream out;
    weft::runtime::dump_goroutines(out);
    return out.str().find(text) != std::string::npos;
  });
}

TEST(trace, shows_what_a_goroutine_did_and_what_it_waited_for) {
  const trace_file t = traced([] {
    weft::chan<int> c, done;
    weft::go({.name = "receiver"}, [=] {
      c.recv();
      weft::yield();
      weft::sleep_for(1ms);
      done.send(1);
    });
    await_dump("[chan receive] \"receiver\"");
    c.send(1);
    done.recv();
  });
  EXPECT_TRUE(contains(test::states_of(t, "\"receiver\""), {"runnable", "running", "chan receive", "sleep"}));
  EXPECT_TRUE(std::any_of(t.tracks.begin(), t.tracks.end(), [](const auto& track) { return track.second == "P 0"; }));
}

TEST(trace, shows_goroutines_that_are_older_than_it) {
  const test::folder tmp;
  const std::string file = tmp / "trace";
  weft::run([&] {
    weft::chan<int> c, done;
    weft::go({.name = "old"}, [=] {
      c.recv();
      done.send(1);
    });
    await_dump("[chan receive] \"old\"");
    weft::trace::start(file);
    c.send(1);
    done.recv();
    weft::trace::stop();
  });
  const trace_file t = trace_file::read(file);
  test::expect_consistent(t);
  EXPECT_TRUE(contains(test::states_of(t, "\"old\""), {"chan receive", "running"}));
}

TEST(trace, shows_blocking_calls_and_goroutines_that_lost_their_P) {
  const trace_file t = traced(
      [] {
        weft::wait_group wg;
        wg.add(2);
        weft::go({.name = "caller"}, [&] {
          weft::blocking([] { std::this_thread::sleep_for(5ms); });
          wg.done();
        });
        std::atomic<bool> stop = false;
        weft::go({.name = "hog"}, [&] {
          while (!stop) {
          }
          wg.done();
        });
        weft::sleep_for(30ms);  // on the only P: the hog must lose it before this returns
        stop = true;
        wg.wait();
      },
      1);
  EXPECT_TRUE(contains(test::states_of(t, "\"caller\""), {"syscall", "running"}));
  EXPECT_TRUE(contains(test::states_of(t, "\"hog\""), {"preempted", "running"}));
}

TEST(trace, leads_from_who_spawned_or_woke_a_goroutine_to_where_it_runs) {
  const trace_file t = traced([] {
    for (int i = 0; i < 100; ++i) weft::async([] { return 1; }).get();
    weft::chan<int> a, b;
    weft::go([=] {
      for (int i = 0; i < 100; ++i) b.send(a.recv().value());
    });
    for (int i = 0; i < 100; ++i) {
      a.send(i);
      b.recv();
    }
  });
  std::multiset<std::uint64_t> begun;
  std::size_t arrived = 0;
  for (const tool::track_event& e : t.events) {
    if (e.flow != 0) begun.insert(e.flow);
    if (e.ended_flow == 0) continue;
    if (const auto at = begun.find(e.ended_flow); at != begun.end()) {
      begun.erase(at);
      ++arrived;
    }
  }
  EXPECT_GE(arrived, 300u);
  EXPECT_LE(begun.size(), 1u);  // the one that stops the trace may have been woken for it
  EXPECT_EQ(test::count(t, "spawn"), 101u);
}

struct yields_when_it_dies {
  ~yields_when_it_dies() {
    for (int i = 0; i < 10; ++i) weft::yield();
  }
};
weft::goroutine_local<yields_when_it_dies> last_act;

TEST(trace, shows_goroutines_to_the_end_of_their_locals_when_their_function_is_gone) {
  const trace_file t = traced([] {
    weft::wait_group wg;
    for (int i = 0; i < 100; ++i) {
      wg.add(1);
      weft::go({.name = "a name that is too long for a small string " + std::to_string(i)},
               [&wg, big = std::array<char, 100>()] {
                 (void)big;
                 (void)*last_act;
                 wg.done();
               });
    }
    wg.wait();
    test::await_solitude();
  });
  EXPECT_TRUE(test::states_of(t, "for a small string 99\"").contains("running"));
}

TEST(trace, calls_goroutines_of_timers_so) {
  const trace_file t = traced([] {
    weft::chan<int> c(1);
    weft::after_func(1us, [=] { c.send(1); });
    c.recv();
  });
  EXPECT_TRUE(test::states_of(t, " timer").contains("running"));
  EXPECT_TRUE(test::states_of(t, " main").contains("running"));
}

TEST(trace, goes_on_while_the_number_of_Ps_changes) {
  const trace_file t = traced(
      [] {
        std::atomic<bool> stop = false;
        weft::wait_group wg;
        for (int i = 0; i < 20; ++i) {
          wg.go([&] {
            while (!stop) weft::yield();
          });
        }
        for (const int n : {5, 1, 3, 2}) {
          weft::runtime::set_max_procs(n);
          weft::sleep_for(1ms);
        }
        stop = true;
        wg.wait();
      },
      2);
  EXPECT_GE(test::count(t, "stopped"), 4u);
}

TEST(trace, may_begin_before_the_runtime_and_end_after_it) {
  const test::folder tmp;
  const std::string file = tmp / "trace";
  weft::trace::start(file);
  weft::run([] { weft::async([] {}).get(); });
  weft::run([] { weft::go({.name = "in the second run"}, [] {}), weft::yield(); });
  weft::trace::stop();
  const trace_file t = trace_file::read(file);
  test::expect_consistent(t);
  EXPECT_TRUE(test::states_of(t, "\"in the second run\"").contains("running"));
}

TEST(trace, may_be_taken_again_and_again) {
  for (int i = 0; i < 5; ++i) {
    const trace_file t = traced([] { weft::async([] { weft::yield(); }).get(); });
    EXPECT_GE(test::count(t, "running"), 2u);
  }
}

TEST(trace, of_a_plain_thread_shows_whom_it_wakes) {
  const trace_file t = traced([] {
    weft::chan<int> c;
    std::thread sender([=] { c.send(1); });
    c.recv();
    weft::blocking([&] { sender.join(); });
    std::thread([] { weft::go({.name = "from outside"}, [] {}); }).join();
    test::await_solitude();
  });
  EXPECT_TRUE(test::states_of(t, "\"from outside\"").contains("running"));
}

TEST(trace, that_is_on_cannot_be_begun) {
  const test::folder tmp;
  weft::trace::start(tmp / "trace");
  EXPECT_THROW(weft::trace::start(tmp / "other"), std::logic_error);
  weft::trace::stop();
}

TEST(trace, that_is_not_on_can_be_ended) {
  EXPECT_NO_THROW(weft::trace::stop());
  weft::run([] { EXPECT_NO_THROW(weft::trace::stop()); });
}

TEST(trace, needs_a_file_that_can_be_made_and_written) {
  EXPECT_THROW(weft::trace::start("/no/such/folder/trace"), std::system_error);
  weft::run([] {
    EXPECT_THROW(weft::trace::start("/no/such/folder/trace"), std::system_error);
    weft::trace::start("/dev/full");
    weft::yield();
    EXPECT_THROW(weft::trace::stop(), std::system_error);
    EXPECT_NO_THROW(weft::trace::stop());
  });
}

TEST(trace, of_many_goroutines_lacks_none_of_them) {
  constexpr int goroutines = 20'000;
  const trace_file t = traced([] {
    weft::wait_group wg;
    for (int i = 0; i < goroutines; ++i) wg.go([] {});
    wg.wait();
  });
  std::size_t ran = 0;
  std::set<std::uint64_t> seen;
  for (const tool::track_event& e : t.events) {
    if (trace_file::is_goroutine(e.track) && e.type == tool::track_event::begin &&
        t.names.at(e.name) == "running") {
      ran += seen.insert(e.track).second;
    }
  }
  EXPECT_EQ(ran, goroutines + 1u);
}

}  // namespace
