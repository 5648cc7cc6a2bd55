// dump_goroutines: every goroutine, in the form of Go's dumps.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <regex>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;

std::string dump() {
  std::ostringstream out;
  weft::runtime::dump_goroutines(out);
  return out.str();
}

bool has(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

int count(const std::string& text, const std::string& pattern) {
  const std::regex r(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), r), std::sregex_iterator()));
}

[[gnu::noinline]] void wait_deep_inside(weft::chan<int> c, int depth) {
  if (depth > 0) {
    wait_deep_inside(c, depth - 1);
  } else {
    c.recv();
  }
  asm volatile("");  // not a tail call
}

TEST(a_dump, shows_the_goroutine_that_asks_for_it_as_running_and_first) {
  weft::run([] {
    weft::chan<int> c;
    test::crew crew;
    const auto parks = test::parks();
    crew.goroutine([=] { c.recv(); });
    test::await_parks(parks + 1);
    const std::string text = dump();
    EXPECT_TRUE(text.starts_with("goroutine " + std::to_string(weft::goroutine_id()) + " [running]:\n")) << text;
    c.close();
  });
}

TEST(a_dump, says_in_gos_words_what_each_goroutine_waits_for) {
  weft::run(
      [] {
        weft::chan<int> c, full;
        weft::mutex m;
        weft::shared_mutex rw;
        weft::wait_group wg;
        weft::condition_variable cv;
        weft::mutex cv_lock;
        bool open = false;
        m.lock();
        rw.lock();
        wg.add();
        test::crew crew;
        crew.goroutine([&] { c.recv(); });
        crew.goroutine([&] { full.send(1); });
        crew.goroutine([&] { weft::select(weft::on_recv(c), weft::on_recv(c)); });
        crew.goroutine([&] { std::lock_guard guard(m); });
        crew.goroutine([&] { std::lock_guard guard(rw); });
        crew.goroutine([&] { std::shared_lock guard(rw); });
        crew.goroutine([&] { wg.wait(); });
        crew.goroutine([&] {
          std::unique_lock lock(cv_lock);
          cv.wait(lock, [&] { return open; });
        });
        std::atomic<bool> over = false;
        crew.goroutine([&] {
          while (!over) weft::sleep_for(100ms);
        });
        // All at once: each of them comes to wait, and the one that sleeps is awake now and then.
        test::await([] {
          const std::string text = dump();
          for (const char* reason : {"chan receive", "chan send", "select", "sync.Mutex.Lock", "sync.RWMutex.Lock",
                                     "sync.RWMutex.RLock", "sync.WaitGroup.Wait", "sync.Cond.Wait", "sleep"}) {
            if (!has(text, std::string("goroutine [0-9]+ \\[") + reason + "\\]:\n")) return false;
          }
          return true;
        });
        over = true;
        c.close();
        full.recv();
        m.unlock();
        rw.unlock();
        wg.done();
        {
          std::lock_guard lock(cv_lock);
          open = true;
        }
        cv.notify_all();
      },
      {.procs = 2});
}

TEST(a_dump, shows_the_frames_and_where_the_goroutine_was_created) {
  weft::run([] {
    weft::chan<int> c;
    test::crew crew;
    const auto parks = test::parks();
    crew.goroutine([=] { wait_deep_inside(c, 3); });
    test::await_parks(parks + 1);
    const std::string text = dump();
    const std::string own = std::to_string(weft::goroutine_id());
    EXPECT_TRUE(has(text, "goroutine [0-9]+ \\[chan receive\\]:\n")) << text;
    // With libdw on the machine: names and lines. Without: addresses for addr2line.
    if (text.find("dump.cpp:") != std::string::npos) {
      EXPECT_EQ(count(text, "wait_deep_inside.*\n\t.*dump\\.cpp:[0-9]+"), 4) << text;
      EXPECT_TRUE(has(text, "created by .* in goroutine " + own + "\n\t.*(dump\\.cpp|anywhere\\.h):[0-9]+")) << text;
      EXPECT_FALSE(has(text, "weft::sched::park")) << "the runtime's own frames are left out\n" << text;
    } else {
      EXPECT_GE(count(text, "\t/.*\\+0x[0-9a-f]+\n"), 5) << text;
      EXPECT_TRUE(has(text, "created by .* in goroutine " + own + "\n\t/.*\\+0x[0-9a-f]+\n")) << text;
    }
    c.close();
  });
}

bool has_names(const std::string& text) { return text.find("dump.cpp:") != std::string::npos; }

TEST(a_dump, shows_the_function_of_weft_that_was_called_and_nothing_from_inside_of_it) {
  weft::run([] {
    weft::net::listener l = weft::net::listen_tcp("127.0.0.1:0");
    const auto parks = test::parks();
    weft::go([&] {
      try {
        l.accept();
      } catch (const std::system_error&) {
        // closed below
      }
    });
    test::await_parks(parks + 1);
    std::string text;
    // Longer if it was awake again when the dump was made.
    for (auto length = 100ms; !has(text, "\\[sleep\\]:\n") && length < 60s; length *= 2) {
      const auto before = test::parks();
      weft::go([=] { weft::sleep_for(length); });  // the last thing that it does: its own frame may be gone
      test::await_parks(before + 1);
      text = dump();
    }
    if (has_names(text)) {
      EXPECT_TRUE(has(text, "\\[IO wait\\]:\n(.*\n\t.*\n)?weft::net::listener::accept\\(\\)\n")) << text;
      EXPECT_TRUE(has(text, "\\[sleep\\]:\n.*weft::.*sleep_")) << text;
      EXPECT_FALSE(has(text, "\nweft::sched::")) << text;
    }
    l.close();
    test::await_solitude();
  });
}

TEST(a_dump, shows_a_name_in_one_line_whatever_is_in_it) {
  weft::run([] {
    weft::chan<int> c;
    const auto parks = test::parks();
    weft::go({.name = "new\nline, \"quoted\", \x1b[31m"}, [=] { c.recv(); });
    std::string too_long(43, 'x');
    too_long += "\u00e4\u00f6\u00fc";
    weft::go({.name = too_long}, [=] { c.recv(); });
    test::await_parks(parks + 2);
    const std::string text = dump();
    EXPECT_NE(text.find(R"(] "new\x0aline, \"quoted\", \x1b[31m":)"), std::string::npos) << text;
    EXPECT_TRUE(has(text, "\\] \"x{43}\\.\\.\\.\":\n")) << text;
    c.close();
    test::await_solitude();
  });
}

TEST(a_dump, shows_names) {
  weft::run([] {
    weft::chan<int> c;
    const auto parks = test::parks();
    weft::go({.name = "the one with a name"}, [=] { c.recv(); });
    test::await_parks(parks + 1);
    EXPECT_TRUE(has(dump(), "goroutine [0-9]+ \\[chan receive\\] \"the one with a name\":\n"));
    c.close();
    test::await_solitude();
  });
}

TEST(a_dump, shows_each_goroutine_by_its_number_also_if_stacks_are_equal) {
  weft::run(
      [] {
        weft::chan<int> c;
        weft::chan<std::uint64_t> numbers(100);
        test::crew crew;
        const auto parks = test::parks();
        for (int i = 0; i < 100; ++i) {
          crew.goroutine([=] {
            numbers.send(weft::goroutine_id());
            wait_deep_inside(c, 0);
          });
        }
        test::await_parks(parks + 100);
        const std::string text = dump();
        for (int i = 0; i < 100; ++i) {
          EXPECT_TRUE(has(text, "goroutine " + std::to_string(*numbers.recv()) + " \\[chan receive\\]:\n")) << text;
        }
        c.close();
      },
      {.procs = 2});
}

TEST(a_dump, shows_a_stack_that_thousands_have_once_and_counts_them) {
  weft::run(
      [] {
        constexpr int many = 3'000;
        weft::chan<int> c;
        test::crew crew;
        const auto parks = test::parks();
        for (int i = 0; i < many; ++i) crew.goroutine([=] { wait_deep_inside(c, 0); });
        test::await_parks(parks + many);
        const std::string text = dump();
        const int shown = count(text, "goroutine [0-9]+ \\[chan receive\\]:\n");
        int counted = shown;
        const std::regex more("\\.\\.\\. and ([0-9]+) more with the same stack:( [0-9]+)+");
        for (auto i = std::sregex_iterator(text.begin(), text.end(), more); i != std::sregex_iterator(); ++i) counted += std::stoi((*i)[1]);
        EXPECT_EQ(counted, many);
        c.close();
      },
      {.procs = 2});
}

TEST(a_dump, shows_goroutines_in_blocking_calls_and_running_ones) {
  weft::run(
      [] {
        test::await_solitude();
        std::atomic<int> inside = 0;
        std::atomic<bool> over = false;
        test::crew crew;
        crew.goroutine([&] {
          weft::blocking([&] {
            ++inside;
            while (!over) std::this_thread::sleep_for(1ms);
          });
        });
        crew.goroutine([&] {
          ++inside;
          while (!over) {
          }
        });
        test::await([&] { return inside == 2; });
        const std::string text = dump();
        EXPECT_TRUE(has(text, "goroutine [0-9]+ \\[syscall\\]:\n")) << text;
        EXPECT_EQ(count(text, "goroutine [0-9]+ \\[running\\]:\n"), 2) << text;
        over = true;
      },
      {.procs = 4});
}

// Nobody else gets the only P meanwhile, however long it takes: a slice has no end here.
const test::scenario dumps_those_not_yet_started("dumps_those_not_yet_started", [] {
  weft::run(
      [] {
        std::atomic<bool> over = false, dumped = false;
        std::string text;
        std::thread outside([&] {
          test::spin_until([&] { return over.load(); });
          text = dump();
          dumped = true;
        });
        test::crew crew;
        for (int i = 0; i < 50; ++i) crew.goroutine([] {});
        over = true;
        test::spin_until([&] { return dumped.load(); });
        outside.join();
        std::printf("%s", text.c_str());
      },
      {.procs = 1});
});

TEST(a_dump, counts_goroutines_that_have_not_started_by_their_creator) {
  const auto end = dumps_those_not_yet_started.run({{"WEFTDEBUG", "asyncpreemptoff=1,slice=1000000"}});
  EXPECT_EQ(end.exit_code, 0) << end;
  EXPECT_TRUE(has(end.out, "50 goroutines \\[runnable\\] not yet started:\ncreated by .* in goroutine [0-9]+\n")) << end;
}

TEST(a_dump, can_be_taken_by_a_plain_thread_and_between_two_runs) {
  EXPECT_EQ(dump().find("[running]"), std::string::npos);
  weft::run([] {
    weft::chan<int> c;
    std::string text;
    test::crew crew;
    crew.thread([&] { text = dump(); });
    crew.wait();
    EXPECT_TRUE(has(text, "goroutine [0-9]+ \\[")) << text;
  });
  EXPECT_NO_THROW(dump());
}

TEST(a_dump, of_many_goroutines_takes_seconds_not_minutes) {
  weft::run(
      [] {
        constexpr int many = static_cast<int>(test::scaled(100'000, 10'000, 5'000));
        weft::chan<int> c;
        weft::wait_group wg;
        for (int i = 0; i < many; ++i) {
          wg.go([=] { c.recv(); });
        }
        test::await([] { return weft::runtime::num_goroutine() == many + 1 && weft::runtime::read_sched_stats().stacks_total >= many; });
        const auto began = std::chrono::steady_clock::now();
        const std::string text = dump();
        EXPECT_LT(std::chrono::steady_clock::now() - began, 120s);
        EXPECT_LT(text.size(), 1'000'000u);
        EXPECT_TRUE(has(text, "more with the same stack"));
        c.close();
        wg.wait();
      },
      {.procs = 2});
}

TEST(dumps, may_be_taken_by_many_at_once_while_everything_moves) {
  weft::run(
      [] {
        std::atomic<bool> over = false;
        test::crew busy;
        for (int i = 0; i < 4; ++i) {
          busy.either(i / 3, [&] {
            weft::chan<int> c;
            weft::mutex m;
            while (!over) {
              weft::go([=] { c.send(1); });
              c.recv();
              std::lock_guard guard(m);
              weft::sleep_for(10us);
              weft::blocking([] { std::this_thread::yield(); });
            }
          });
        }
        {
          // 10 each, or as many as a busy machine does in ten seconds.
          const auto end = std::chrono::steady_clock::now() + 10s;
          test::crew dumpers;
          for (int i = 0; i < 4; ++i) {
            dumpers.either(i, [=] {
              for (int k = 0; k < (test::under_sanitizer ? 2 : 10) && (k == 0 || std::chrono::steady_clock::now() < end); ++k) {
                EXPECT_TRUE(has(dump(), "goroutine [0-9]+ \\["));
              }
            });
          }
        }
        over = true;
      },
      {.procs = 4});
}

}  // namespace
