// Work is conserved: no P stays idle while goroutines wait for one. Goroutines that keep their P until as many of them
// run at once as there are Ps show it: one P left idle, and they would wait for ever. Nobody else may keep a P busy
// meanwhile, not even by yielding.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/await.h"
#include "support/build.h"

namespace {

// A meeting of `count` goroutines, each of which keeps its P until all are there.
struct meeting {
  explicit meeting(int n) : count(n) {}

  void attend() {
    ++arrived;
    test::spin_until([this] { return arrived == count; });
    ++left;
  }
  bool is_over() const { return left == count; }

  const int count;
  std::atomic<int> arrived{0};
  std::atomic<int> left{0};
};

class all_ps_get_work : public testing::TestWithParam<int> {
 protected:
  int procs() const { return GetParam(); }
  int rounds() const {
    const int most = test::scaled(300, 60, 60);
    return procs() > 8 ? most / 10 : most;
  }

  template <class Round>
  void repeat_in_a_run(Round round) {
    weft::run(
        [&] {
          for (int i = 0; i < rounds(); ++i) round();
        },
        {.procs = procs()});
  }
};

INSTANTIATE_TEST_SUITE_P(procs, all_ps_get_work, testing::Values(2, 3, 8, 32), testing::PrintToStringParamName());

TEST_P(all_ps_get_work, when_one_goroutine_spawns_for_all) {
  repeat_in_a_run([this] {
    meeting m(procs());
    for (int i = 1; i < procs(); ++i) weft::go([&m] { m.attend(); });
    m.attend();
    test::await([&m] { return m.is_over(); });
  });
}

TEST_P(all_ps_get_work, when_more_wait_than_there_are_ps) {
  repeat_in_a_run([this] {
    meeting m(procs());
    std::atomic<int> extra = 0;
    for (int i = 1; i < procs(); ++i) {
      weft::go([&m] { m.attend(); });
      weft::go([&extra] { ++extra; });
    }
    m.attend();
    test::await([&] { return m.is_over() && extra == procs() - 1; });
  });
}

TEST_P(all_ps_get_work, when_the_work_overflows_into_the_global_queue) {
  repeat_in_a_run([this] {
    meeting m(procs());
    std::atomic<int> extra = 0;
    for (int i = 0; i < 1000; ++i) weft::go([&extra] { ++extra; });
    for (int i = 1; i < procs(); ++i) weft::go([&m] { m.attend(); });
    m.attend();
    test::await([&] { return m.is_over() && extra == 1000; });
  });
}

TEST_P(all_ps_get_work, when_a_plain_thread_spawns_for_all) {
  weft::start({.procs = procs()});
  for (int i = 0; i < rounds(); ++i) {
    meeting m(procs());
    for (int k = 0; k < procs(); ++k) weft::go([&m] { m.attend(); });
    test::await([&m] { return m.is_over(); });
  }
  test::await([] { return weft::runtime::num_goroutine() == 0; });
  weft::shutdown();
}

TEST_P(all_ps_get_work, when_each_spawns_the_next_and_keeps_its_p) {
  repeat_in_a_run([this] {
    meeting m(procs());
    struct chain {
      meeting& m;
      void operator()(int more) const {
        if (more > 0) weft::go(*this, more - 1);
        m.attend();
      }
    };
    weft::async([&] { chain{m}(procs() - 1); }).wait();
    test::await([&m] { return m.is_over(); });
  });
}

TEST_P(all_ps_get_work, when_one_goroutine_wakes_all_the_others) {
  repeat_in_a_run([this] {
    meeting m(procs());
    std::atomic<bool> release = false;
    std::atomic<int> waiting = 0;
    const auto gate = weft::async([&] { test::await([&] { return release.load(); }); });
    for (int i = 1; i < procs(); ++i) {
      weft::go([&] {
        ++waiting;
        gate.wait();
        m.attend();
      });
    }
    test::await([&] { return waiting == procs() - 1; });
    release = true;
    gate.wait();
    m.attend();
    test::await([&m] { return m.is_over(); });
  });
}

TEST_P(all_ps_get_work, when_more_goroutines_yield_than_there_are_ps) {
  repeat_in_a_run([this] {
    meeting m(procs());
    std::atomic<bool> begin = false;
    std::atomic<int> invited = 1;  // the main goroutine is
    std::atomic<int> ended = 0;
    for (int i = 0; i < 2 * procs(); ++i) {
      weft::go([&] {
        while (!begin) weft::yield();
        if (invited++ < procs()) m.attend();
        ++ended;
      });
    }
    for (int i = 0; i < 100; ++i) weft::yield();
    begin = true;
    m.attend();
    test::await([&] { return ended == 2 * procs(); });
  });
}

TEST_P(all_ps_get_work, when_goroutines_yielded_to_each_other_before_they_kept_their_p) {
  repeat_in_a_run([this] {
    meeting m(procs());
    std::atomic<bool> begin = false;
    for (int i = 1; i < procs(); ++i) {
      weft::go([&] {
        while (!begin) weft::yield();
        m.attend();
      });
    }
    for (int i = 0; i < 100; ++i) weft::yield();
    begin = true;
    m.attend();
    test::await([&m] { return m.is_over(); });
  });
}

TEST_P(all_ps_get_work, after_the_runtime_was_idle) {
  weft::start({.procs = procs()});
  for (int i = 0; i < rounds() / 10 + 1; ++i) {
    // Everyone is done, and the threads are on their way to sleep or asleep already.
    test::await([] { return weft::runtime::num_goroutine() == 0; });
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(i % 5));
    auto m = std::make_shared<meeting>(procs());
    weft::go([this, m] {
      for (int k = 1; k < procs(); ++k) weft::go([m] { m->attend(); });
      m->attend();
    });
    test::await([&m] { return m->is_over(); });
  }
  weft::shutdown();
}

TEST_P(all_ps_get_work, in_the_first_moment_of_a_run) {
  for (int i = 0; i < rounds() / 10 + 1; ++i) {
    meeting m(procs());
    weft::run(
        [&] {
          for (int k = 1; k < procs(); ++k) weft::go([&m] { m.attend(); });
          m.attend();
          test::await([&m] { return m.is_over(); });
        },
        {.procs = procs()});
  }
}

}  // namespace
