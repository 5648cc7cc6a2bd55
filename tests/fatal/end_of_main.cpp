// A goroutine dies, and main ends while the report is written: the program ends as the report says.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>

#include "support/await.h"
#include "support/park.h"
#include "support/subprocess.h"

namespace {

std::atomic<bool> begun = false;

// Who reports it asks for the text, after it has said that the end is near.
struct shipwreck : std::exception {
  const char* what() const noexcept override {
    begun = true;
    return "the boat sank";
  }
};

void throw_something() { throw shipwreck(); }
void quit() {
  ::raise(SIGQUIT);
  begun = true;
}

void die_beside_main(void (*die)()) {
  weft::run([&] {
    weft::go({.name = "witness"}, test::park_for_ever);
    test::await([] { return weft::runtime::read_sched_stats().parks != 0; });
    weft::go(die);
    test::await([&] { return begun.load(); });
  });
  std::_Exit(0);
}

const test::scenario throws("throws", [] { die_beside_main(throw_something); });
const test::scenario quits("quits", [] { die_beside_main(quit); });

// A program that owns its main().
const test::scenario throws_in_the_background("throws_in_the_background", [] {
  weft::start();
  weft::go(throw_something);
  test::await([&] { return begun.load(); });
  std::exit(0);
});

const test::scenario exits_in_its_terminate_handler("exits_in_its_terminate_handler", [] {
  std::set_terminate([] { std::exit(5); });
  die_beside_main(throw_something);
});

const test::scenario two_throw("two_throw", [] {
  weft::run(
      [] {
        weft::go({.name = "witness"}, test::park_for_ever);
        test::await([] { return weft::runtime::read_sched_stats().parks != 0; });
        static std::atomic<int> ready = 0;
        for (int i = 0; i < 4; ++i) {
          weft::go([] {
            ++ready;
            test::spin_until([] { return ready == 4; });
            throw_something();
          });
        }
        test::park_for_ever();
      },
      {.procs = 4});
});

// Its terminate handler never comes to an end.
const test::scenario dies_for_ever("dies_for_ever", [] {
  std::set_terminate([] {
    for (;;) ::pause();
  });
  die_beside_main(throw_something);
});

void expect_list(const test::outcome& end) {
  EXPECT_FALSE(end.timed_out) << end;
  EXPECT_NE(end.err.find("] \"witness\":"), std::string::npos) << "no list\n" << end;
}

TEST(main_that_ends_beside_a_dying_goroutine, does_not_hide_its_exception) {
  const auto end = throws.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_NE(end.err.find("the boat sank"), std::string::npos) << end;
  expect_list(end);
}

TEST(main_that_ends_beside_a_dying_goroutine, does_not_cut_the_list_off_that_was_asked_for) {
  const auto end = quits.run();
  EXPECT_EQ(end.exit_code, 2) << end;
  expect_list(end);
}

TEST(main_that_ends_beside_a_dying_goroutine, waits_in_exit_too) {
  const auto end = throws_in_the_background.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_NE(end.err.find("the boat sank"), std::string::npos) << end;
}

TEST(main_that_ends_beside_a_dying_goroutine, does_not_wait_for_ever) {
  const auto end = dies_for_ever.run();
  EXPECT_FALSE(end.timed_out) << end;
  EXPECT_EQ(end.exit_code, 0) << end;
  expect_list(end);
}

TEST(goroutines_that_die_at_once, do_not_cut_each_others_report_off) {
  const auto end = two_throw.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  expect_list(end);
}

TEST(main_that_ends_beside_a_dying_goroutine, does_not_wait_for_a_handler_that_exits) {
  const auto end = exits_in_its_terminate_handler.run();
  EXPECT_FALSE(end.timed_out) << end;
  EXPECT_EQ(end.exit_code, 5) << end;
}

}  // namespace
