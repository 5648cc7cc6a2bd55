// call_once: std's, for goroutines and plain threads.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "support/anywhere.h"
#include "support/build.h"

namespace {

static_assert(!std::is_copy_constructible_v<weft::once_flag>);
constinit weft::once_flag at_namespace_scope;

class once : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, once, test::everywhere(), test::name_of);

TEST_P(once, runs_the_function_once_and_everybody_sees_what_it_did) {
  here([] {
    for (int round = 0; round < 50; ++round) {
      weft::once_flag flag;
      int value = 0;
      test::crew crew;
      for (int i = 0; i < 6; ++i) {
        crew.either(i, [&] {
          weft::call_once(flag, [&] {
            weft::yield();
            ++value;
          });
          EXPECT_EQ(value, 1);
        });
      }
    }
  });
}

TEST_P(once, passes_arguments_on) {
  here([] {
    weft::once_flag flag;
    std::string text;
    struct maker {
      void make(std::string& to, std::unique_ptr<int> n) { to = std::to_string(*n); }
    } m;
    weft::call_once(flag, &maker::make, m, text, std::make_unique<int>(7));
    EXPECT_EQ(text, "7");
    weft::call_once(flag, &maker::make, &m, text, std::make_unique<int>(8));
    EXPECT_EQ(text, "7");
    weft::call_once(at_namespace_scope, [] {});
  });
}

TEST_P(once, a_function_that_throws_may_be_called_again) {
  here([] {
    weft::once_flag flag;
    int calls = 0;
    const auto fail_twice = [&] {
      if (++calls < 3) throw std::runtime_error("not yet");
    };
    EXPECT_THROW(weft::call_once(flag, fail_twice), std::runtime_error);
    EXPECT_THROW(weft::call_once(flag, fail_twice), std::runtime_error);
    weft::call_once(flag, fail_twice);
    weft::call_once(flag, fail_twice);
    EXPECT_EQ(calls, 3);
  });
}

TEST_P(once, when_it_throws_one_of_those_that_wait_calls_it_instead) {
  here([] {
    for (int round = 0; round < 30; ++round) {
      weft::once_flag flag;
      std::atomic<int> calls = 0, caught = 0, returned = 0;
      {
        test::crew crew;
        for (int i = 0; i < 6; ++i) {
          crew.either(i, [&] {
            try {
              weft::call_once(flag, [&] {
                weft::yield();
                if (++calls <= 3) throw 1;
              });
              ++returned;
            } catch (int) {
              ++caught;
            }
          });
        }
      }
      EXPECT_EQ(calls.load(), 4);
      EXPECT_EQ(caught.load(), 3);
      EXPECT_EQ(returned.load(), 3);
    }
  });
}

TEST_P(once, a_goroutine_that_ends_in_the_function_has_not_done_it) {
  here([] {
    weft::once_flag flag;
    weft::wait_group left;
    left.go([&] { weft::call_once(flag, [] { weft::exit_goroutine(); }); });
    left.wait();
    bool ran = false;
    weft::call_once(flag, [&] { ran = true; });
    EXPECT_TRUE(ran);
  });
}

TEST_P(once, flags_may_nest) {
  here([] {
    weft::once_flag outer, inner;
    int order = 0;
    weft::call_once(outer, [&] {
      weft::call_once(inner, [&] { order = order * 10 + 1; });
      order = order * 10 + 2;
    });
    EXPECT_EQ(order, 12);
  });
}

TEST_P(once, may_be_destroyed_when_all_calls_have_returned) {
  here([] {
    const int rounds = static_cast<int>(test::scaled(1000, 300, 200));
    for (int i = 0; i < rounds; ++i) {
      auto flag = std::make_unique<weft::once_flag>();
      std::atomic<bool> begun = false;
      weft::wait_group other;
      other.go([&] {
        weft::call_once(*flag, [&] {
          begun = true;
          weft::yield();
        });
      });
      test::await([&] { return begun.load(); });
      weft::call_once(*flag, [] { ADD_FAILURE(); });
      other.wait();
    }
  });
}

}  // namespace
