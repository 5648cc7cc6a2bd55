// The flight recorder: the last part of the execution trace, kept in memory and written on demand.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "support/folder.h"
#include "support/traced.h"

namespace {

using namespace std::chrono_literals;
using tool::trace_file;

constexpr std::size_t little = 1 << 20;
constexpr int too_many_turns = 20'000;  // for so little memory

trace_file saved() {
  const test::folder tmp;
  const std::string file = tmp / "trace";
  weft::trace::save(file);
  trace_file t = trace_file::read(file);
  EXPECT_FALSE(test::has_losses(t));
  test::expect_consistent(t);
  return t;
}

// From the beginning of the recording to its end.
template <class F>
void recorded(F f, int procs = 2) {
  weft::run(
      [&] {
        weft::trace::record(little);
        f();
        weft::trace::stop();
      },
      {.procs = procs});
}

void run_named(const char* name) {
  weft::wait_group wg;
  wg.add(1);
  weft::go({.name = name}, [&] {
    weft::yield();
    wg.done();
  });
  wg.wait();
}

void fill_memory() {
  weft::chan<int> there, back;
  weft::go([=] {
    while (const auto i = there.recv()) back.send(*i);
    back.close();
  });
  for (int i = 0; i < too_many_turns; ++i) {
    there.send(i);
    back.recv();
  }
  there.close();
  back.recv();
}

bool knows(const trace_file& t, const char* name) { return !test::states_of(t, name).empty(); }

TEST(flight_recorder, has_all_of_it_while_it_is_short) {
  recorded([] {
    run_named("short");
    const trace_file t = saved();
    EXPECT_TRUE(test::states_of(t, "\"short\"").contains("running"));
    EXPECT_TRUE(test::states_of(t, "main").contains("running"));
  });
}

TEST(flight_recorder, forgets_what_is_old_and_keeps_what_is_new) {
  recorded([] {
    run_named("early");
    fill_memory();
    run_named("late");
    const trace_file t = saved();
    EXPECT_FALSE(knows(t, "\"early\""));
    EXPECT_TRUE(test::states_of(t, "\"late\"").contains("running"));
    EXPECT_GE(test::count(t, "running"), 2'000u);
    EXPECT_LE(test::count(t, "running"), static_cast<std::size_t>(too_many_turns));
  });
}

TEST(flight_recorder, knows_goroutines_that_did_nothing_in_that_time) {
  recorded([] {
    weft::chan<int> c, answers;
    weft::go({.name = "patient"}, [=] {
      while (const auto i = c.recv()) answers.send(*i);
      answers.close();
    });
    weft::yield();
    fill_memory();
    EXPECT_EQ(test::states_of(saved(), "\"patient\""), std::set<std::string>{"chan receive"});
    c.send(1);
    answers.recv();
    EXPECT_TRUE(test::states_of(saved(), "\"patient\"").contains("running"));
    c.close();
    answers.recv();
  });
}

TEST(flight_recorder, knows_who_ran_all_the_time) {
  recorded([] {
    std::atomic<bool> stop = false;
    weft::wait_group wg;
    wg.add(1);
    weft::go({.name = "hog"}, [&] {
      while (!stop) {
      }
      wg.done();
    });
    fill_memory();
    EXPECT_TRUE(test::states_of(saved(), "\"hog\"").contains("running"));
    stop = true;
    wg.wait();
  });
}

TEST(flight_recorder, goes_on_after_a_save_and_still_knows_what_was_before) {
  recorded([] {
    run_named("first");
    EXPECT_TRUE(knows(saved(), "\"first\""));
    run_named("second");
    const trace_file t = saved();
    EXPECT_TRUE(knows(t, "\"first\""));
    EXPECT_TRUE(knows(t, "\"second\""));
    fill_memory();
    EXPECT_FALSE(knows(saved(), "\"first\""));
  });
}

TEST(flight_recorder, may_be_saved_by_a_plain_thread) {
  recorded([] {
    run_named("seen");
    weft::blocking([] { std::thread([] { EXPECT_TRUE(knows(saved(), "\"seen\"")); }).join(); });
  });
}

TEST(flight_recorder, may_begin_before_the_runtime_and_end_after_it) {
  weft::trace::record();
  weft::run([] { run_named("within"); });
  EXPECT_TRUE(knows(saved(), "\"within\""));
  weft::trace::stop();
}

TEST(flight_recorder, goes_on_while_the_number_of_Ps_changes) {
  recorded([] {
    for (int procs : {1, 4, 2, 8, 1}) {
      weft::runtime::set_max_procs(procs);
      run_named("mover");
      fill_memory();
      EXPECT_GE(test::count(saved(), "running"), 1000u);
    }
  });
}

TEST(flight_recorder, is_one_trace_among_others_of_which_one_can_be_on) {
  const test::folder tmp;
  EXPECT_THROW(weft::trace::save(tmp / "nothing"), std::logic_error);
  weft::trace::record();
  EXPECT_THROW(weft::trace::record(), std::logic_error);
  EXPECT_THROW(weft::trace::start(tmp / "other"), std::logic_error);
  weft::trace::stop();
  weft::trace::start(tmp / "file");
  EXPECT_THROW(weft::trace::record(), std::logic_error);
  EXPECT_THROW(weft::trace::save(tmp / "nothing"), std::logic_error);
  weft::trace::stop();
}

TEST(flight_recorder, survives_a_file_that_cannot_be_made_or_written) {
  recorded([] {
    run_named("kept");
    EXPECT_THROW(weft::trace::save("/no/such/folder/trace"), std::system_error);
    EXPECT_THROW(weft::trace::save("/dev/full"), std::system_error);
    EXPECT_TRUE(knows(saved(), "\"kept\""));
  });
}

TEST(flight_recorder, may_be_used_again_and_again) {
  for (int i = 0; i < 5; ++i) {
    recorded([] {
      run_named("again");
      EXPECT_TRUE(knows(saved(), "\"again\""));
    });
  }
}

}  // namespace
