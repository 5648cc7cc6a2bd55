// Whoever can run does run, however busy the others keep the Ps. Each test ends only if it does.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/anywhere.h"
#include "support/await.h"
#include "support/one_slice.h"
#include "support/without_preemption.h"

namespace {

TEST(a_goroutine_that_yields, does_not_starve_the_others) {
  for (const int procs : {1, 2}) {
    weft::run(
        [] {
          std::atomic<bool> others_ran = false;
          auto yields = weft::async([&] {
            while (!others_ran) weft::yield();
          });
          weft::go([&] { others_ran = true; });
          yields.get();
        },
        {.procs = procs});
  }
}

TEST(goroutines_that_yield, get_turns_in_equal_measure_on_one_p) {
  constexpr int count = 50;
  constexpr long turns = 2000;
  long taken[count] = {};
  std::vector<long> at_the_end;
  std::atomic<bool> over = false;
  std::atomic<int> ended = 0;
  weft::run(
      [&] {
        for (auto& own : taken) {
          weft::go([&] {
            while (!over) {
              if (++own == turns && !over.exchange(true)) at_the_end.assign(std::begin(taken), std::end(taken));
              weft::yield();
            }
            ++ended;
          });
        }
        test::await([&] { return ended == count; });
      },
      {.procs = 1});
  EXPECT_GE(*std::min_element(at_the_end.begin(), at_the_end.end()), turns / 2);
}

// Keeps every P busy with goroutines of its own until told to stop.
class busy {
 public:
  enum class kind { yielding, replacing_themselves, spawning_and_joining };

  busy(kind k, int count) : count_(count) {
    for (int i = 0; i < count; ++i) {
      switch (k) {
        case kind::yielding:
          weft::go([this] {
            while (!stop_) weft::yield();
            ++ended_;
          });
          break;
        case kind::replacing_themselves:
          weft::go([this] { replace(); });
          break;
        case kind::spawning_and_joining:
          weft::go([this] {
            while (!stop_) weft::async([] {}).get();
            ++ended_;
          });
          break;
      }
    }
  }
  busy(const busy&) = delete;
  busy& operator=(const busy&) = delete;
  ~busy() {
    stop_ = true;
    test::await([this] { return ended_ == count_; });
  }

 private:
  void replace() {
    if (stop_) {
      ++ended_;
    } else {
      weft::go([this] { replace(); });
    }
  }

  int count_;
  std::atomic<bool> stop_{false};
  std::atomic<int> ended_{0};
};

class among_busy_goroutines : public testing::TestWithParam<busy::kind> {};

INSTANTIATE_TEST_SUITE_P(of_each_kind, among_busy_goroutines,
                         testing::Values(busy::kind::yielding, busy::kind::replacing_themselves,
                                         busy::kind::spawning_and_joining),
                         [](const auto& kind) -> std::string {
                           switch (kind.param) {
                             case busy::kind::yielding:
                               return "yielding";
                             case busy::kind::replacing_themselves:
                               return "replacing_themselves";
                             case busy::kind::spawning_and_joining:
                               return "spawning_and_joining";
                           }
                           return "";
                         });

TEST_P(among_busy_goroutines, one_spawned_by_a_plain_thread_runs) {
  for (const int procs : {1, 2, 4}) {
    weft::run(
        [] {
          busy others(GetParam(), 4);
          for (int i = 0; i < 10; ++i) {
            std::atomic<bool> ran = false;
            std::atomic<bool> spawned = false;
            std::thread outsider([&] {
              weft::go([&] { ran = true; });
              spawned = true;
            });
            test::await([&] { return ran && spawned; });
            outsider.join();
          }
        },
        {.procs = procs});
  }
}

TEST_P(among_busy_goroutines, one_woken_by_a_plain_thread_runs) {
  for (const int procs : {1, 2, 4}) {
    std::atomic<int> done = 0;
    std::thread outsider;
    weft::run(
        [&] {
          busy others(GetParam(), 4);
          outsider = std::thread([&] {
            for (int i = 0; i < 10; ++i) {
              weft::async([] { weft::yield(); }).get();
              ++done;
            }
          });
          test::await([&] { return done == 10; });
        },
        {.procs = procs});
    outsider.join();
  }
}

TEST_P(among_busy_goroutines, one_in_the_ring_runs) {
  for (const int procs : {1, 2, 4}) {
    weft::run(
        [] {
          busy others(GetParam(), 4);
          for (int i = 0; i < 10; ++i) {
            std::atomic<int> ran = 0;
            for (int k = 0; k < 10; ++k) weft::go([&] { ++ran; });
            test::await([&] { return ran == 10; });
          }
        },
        {.procs = procs});
  }
}

TEST_P(among_busy_goroutines, one_that_yields_goes_on) {
  for (const int procs : {1, 2, 4}) {
    weft::run(
        [] {
          busy others(GetParam(), 4);
          for (int i = 0; i < 20; ++i) weft::yield();
        },
        {.procs = procs});
  }
}

TEST_P(among_busy_goroutines, one_that_waits_goes_on) {
  for (const int procs : {1, 2, 4}) {
    weft::run(
        [] {
          busy others(GetParam(), 4);
          for (int i = 0; i < 10; ++i) weft::async([] { weft::yield(); }).get();
        },
        {.procs = procs});
  }
}

// Each wakes the other through runnext, for ever: the time slice that both share must end.
TEST(a_pair_that_passes_control_through_runnext, does_not_starve_the_ring_of_its_p) {
  weft::run(
      [] {
        for (int i = 0; i < 5; ++i) {
          std::atomic<bool> ran = false;
          weft::go([&] { ran = true; });
          weft::go([] {});  // pushes the one above from runnext into the ring
          while (!ran) weft::async([] {}).get();
        }
      },
      {.procs = 1});
}

void pass_on(std::atomic<bool>& stop, std::atomic<bool>& ended) {
  if (stop) {
    ended = true;
  } else {
    weft::go(pass_on, std::ref(stop), std::ref(ended));
  }
}

TEST(a_chain_in_which_each_spawns_the_next, does_not_starve_the_ring_of_its_p) {
  weft::run(
      [] {
        std::atomic<bool> stop = false;
        std::atomic<bool> ended = false;
        weft::go([&] { stop = true; });
        weft::go(pass_on, std::ref(stop), std::ref(ended));
        test::await([&] { return ended.load(); });
      },
      {.procs = 1});
}

TEST(two_chains_in_which_each_spawns_the_next, both_go_on_on_one_p) {
  weft::run(
      [] {
        std::atomic<bool> stop = false;
        std::atomic<bool> ended[2] = {};
        std::atomic<long> steps[2] = {};
        std::function<void(int)> step = [&](int chain) {
          ++steps[chain];
          if (stop) {
            ended[chain] = true;
          } else {
            weft::go(std::ref(step), chain);
          }
        };
        weft::go(std::ref(step), 0);
        weft::go(std::ref(step), 1);
        test::await([&] { return steps[0] > 100 && steps[1] > 100; });
        stop = true;
        test::await([&] { return ended[0] && ended[1]; });
      },
      {.procs = 1});
}

// The order in which a sleeper whose time has come, and a chain in which each spawns the next, run: "0123s4567". The P looks at
// its timers at every fourth choice or so; `choices` says how many there are before. Empty if the time came too early, among those.
std::string order_of_sleeper_and_chain(int choices) {
  std::string order;
  weft::chan<int> ended(2);
  const auto due = std::chrono::steady_clock::now() + std::chrono::microseconds(500);
  weft::go([&] {
    weft::sleep_until(due);
    order += 's';
    ended.send(0);
  });
  weft::yield();
  weft::chan<int> turns(1);
  for (int i = 0; i < choices; ++i) {
    weft::go([&] { turns.send(0); });
    turns.recv();
  }
  const bool in_time = std::chrono::steady_clock::now() < due;
  while (std::chrono::steady_clock::now() <= due) continue;
  std::function<void(char)> step = [&](char name) {
    order += name;
    if (name < '7') {
      weft::go(std::ref(step), static_cast<char>(name + 1));
    } else {
      ended.send(0);
    }
  };
  weft::go(std::ref(step), '0');
  ended.recv();
  ended.recv();
  return in_time ? order : "";
}

// Whenever one of them naps, the nap of another one is over.
TEST(goroutines_that_nap_for_less_time_than_they_compute, do_not_keep_their_p_to_themselves) {
  using std::chrono::steady_clock;
  weft::run(
      [] {
        std::atomic<bool> over = false;
        test::crew crew;
        for (int i = 0; i < 3; ++i) {
          crew.goroutine([&] {
            while (!over) {
              weft::sleep_for(std::chrono::microseconds(100));
              for (const auto until = steady_clock::now() + std::chrono::microseconds(300); steady_clock::now() < until;) {
              }
            }
          });
        }
        steady_clock::duration worst{};
        for (const auto began = steady_clock::now(); steady_clock::now() - began < std::chrono::seconds(4);) {
          const auto before = steady_clock::now();
          weft::sleep_for(std::chrono::milliseconds(2));
          worst = std::max(worst, steady_clock::now() - before);
        }
        over = true;
        EXPECT_LT(worst, std::chrono::milliseconds(1500));
      },
      {.procs = 1});
}

// Who was just spawned is about to run: it does not wait behind whom a timer readies at that moment.
TEST(a_timer_that_is_due, lets_the_one_in_runnext_go_first_but_not_a_chain_of_them) {
  weft::run(
      [] {
        for (int choices = 0; choices < 8; ++choices) {
          std::string order;
          while (order.empty()) order = test::in_one_slice([&] { return order_of_sleeper_and_chain(choices); });
          EXPECT_EQ(order.front(), '0') << order;
          EXPECT_LT(order.find('s'), order.size() - 1) << order;
        }
      },
      {.procs = 1});
}

}  // namespace
