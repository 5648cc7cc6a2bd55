// An exception that leaves a goroutine's function is reported and ends the program through std::terminate.
#include <gtest/gtest.h>
#include <signal.h>
#include <weft/weft.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/await.h"
#include "support/migrate.h"
#include "support/park.h"
#include "support/subprocess.h"

namespace {

void say_id() {
  std::printf("%llu\n", static_cast<unsigned long long>(weft::goroutine_id()));
  std::fflush(stdout);
}

std::string id_said_by(const test::outcome& end) { return end.out.substr(0, end.out.find('\n')); }

void expect_report(const test::outcome& end, const std::string& what) {
  EXPECT_FALSE(end.timed_out) << end;
  EXPECT_NE(end.err.find(what), std::string::npos) << "no word of " << what << "\n" << end;
  ASSERT_FALSE(id_said_by(end).empty()) << end;
  EXPECT_TRUE(std::regex_search(end.err, std::regex("goroutine " + id_said_by(end) + "\\b"))) << end;
  EXPECT_TRUE(std::regex_search(end.err, std::regex("0x[0-9a-f]{4,}"))) << "no stack\n" << end;
}

const test::scenario throws_a_runtime_error("throws_a_runtime_error", [] {
  weft::run([] {
    weft::go([] {
      say_id();
      throw std::runtime_error("the boat sank");
    });
    test::park_for_ever();
  });
});

TEST(an_uncaught_exception, is_reported_and_aborts) {
  const auto end = throws_a_runtime_error.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  expect_report(end, "the boat sank");
  EXPECT_NE(end.err.find("runtime_error"), std::string::npos) << "no word of its type\n" << end;
}

const test::scenario throws_a_number("throws_a_number", [] {
  weft::run([] {
    weft::go([] {
      say_id();
      throw 42;
    });
    test::park_for_ever();
  });
});

TEST(an_uncaught_exception, that_is_no_std_exception_is_reported_by_its_type) {
  const auto end = throws_a_number.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  expect_report(end, "int");
}

const test::scenario throws_in_a_named_goroutine("throws_in_a_named_goroutine", [] {
  weft::run([] {
    weft::go({.name = std::string("helmsman")}, [] {
      say_id();
      throw std::logic_error("wrong course");
    });
    test::park_for_ever();
  });
});

TEST(an_uncaught_exception, is_reported_with_the_name_of_the_goroutine) {
  const auto end = throws_in_a_named_goroutine.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  expect_report(end, "wrong course");
  EXPECT_NE(end.err.find("helmsman"), std::string::npos) << end;
}

const test::scenario throws_after_moving_to_another_thread("throws_after_moving_to_another_thread", [] {
  weft::run(
      [] {
        weft::go([] {
          test::resume_on_another_thread();
          say_id();
          throw std::runtime_error("far from home");
        });
        test::park_for_ever();
      },
      {.procs = 2});
});

TEST(an_uncaught_exception, is_reported_on_whichever_thread_the_goroutine_is) {
  const auto end = throws_after_moving_to_another_thread.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  expect_report(end, "far from home");
}

const test::scenario throws_under_a_plain_main("throws_under_a_plain_main", [] {
  weft::go([] {
    say_id();
    throw std::runtime_error("in the background");
  });
  for (;;) std::this_thread::yield();
});

TEST(an_uncaught_exception, of_a_goroutine_that_a_plain_thread_spawned_is_reported) {
  const auto end = throws_under_a_plain_main.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  expect_report(end, "in the background");
}

const test::scenario has_its_own_terminate_handler("has_its_own_terminate_handler", [] {
  std::set_terminate([] {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::exception& e) {
      std::printf("own handler: %s\n", e.what());
    }
    std::fflush(stdout);
    std::_Exit(3);
  });
  weft::run([] {
    weft::go([] {
      say_id();
      throw std::runtime_error("the boat sank");
    });
    test::park_for_ever();
  });
});

TEST(an_uncaught_exception, is_reported_before_the_programs_own_terminate_handler_is_called_with_it) {
  const auto end = has_its_own_terminate_handler.run();
  EXPECT_EQ(end.exit_code, 3) << end;
  EXPECT_NE(end.out.find("own handler: the boat sank\n"), std::string::npos) << end;
  expect_report(end, "the boat sank");
}

[[gnu::noinline]] void throws_on_demand(const char* text) { throw std::runtime_error(text); }

const test::scenario breaks_a_noexcept_promise("breaks_a_noexcept_promise", [] {
  weft::run([] {
    weft::go([]() noexcept { throws_on_demand("promised not to"); });
    test::park_for_ever();
  });
});

TEST(an_uncaught_exception, that_meets_noexcept_aborts) {
  const auto end = breaks_a_noexcept_promise.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
}

const test::scenario is_got_by_nobody("is_got_by_nobody", [] {
  weft::run([] {
    weft::async([] { throw std::runtime_error("kept in the future"); });
    test::await([] { return weft::runtime::num_goroutine() == 1; });
  });
});

TEST(an_exception_of_an_async_function, ends_nothing) {
  const auto end = is_got_by_nobody.run();
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_EQ(end.err, "") << end;
}

const test::scenario leaves_run_uncaught("leaves_run_uncaught", [] {
  weft::run([] {
    say_id();
    throw std::runtime_error("nobody catches me");
  });
});

TEST(an_exception_of_the_main_goroutine, ends_the_program_if_the_caller_of_run_does_not_catch_it) {
  const auto end = leaves_run_uncaught.run();
  EXPECT_EQ(end.signal, SIGABRT) << end;
  EXPECT_NE(end.err.find("nobody catches me"), std::string::npos) << end;
}

const test::scenario swallows_the_exit("swallows_the_exit", [] {
  weft::run([] {
    weft::go([] {
      try {
        weft::exit_goroutine();
      } catch (...) {
      }
      std::puts("went on");
    });
    test::await([] { return weft::runtime::num_goroutine() == 1; });
  });
});

// Forbidden by the contract; whatever comes of it, it must come to an end.
TEST(a_catch_all_that_swallows_exit_goroutine, does_not_hang_the_program) {
  EXPECT_FALSE(swallows_the_exit.run().timed_out);
}

}  // namespace
