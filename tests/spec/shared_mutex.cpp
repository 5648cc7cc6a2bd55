// shared_mutex: many readers or one writer; neither starves the other.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/shared_mutex.h"

namespace {

using namespace std::chrono_literals;

static_assert(requires(weft::shared_mutex m) {
  m.lock();
  m.unlock();
  { m.try_lock() } -> std::same_as<bool>;
  m.lock_shared();
  m.unlock_shared();
  { m.try_lock_shared() } -> std::same_as<bool>;
});
static_assert(!std::is_copy_constructible_v<weft::shared_mutex>);

class shared_mutex : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(everywhere, shared_mutex, test::everywhere(), test::name_of);

TEST_P(shared_mutex, lets_all_readers_in_together) {
  here([] {
    weft::shared_mutex m;
    std::atomic<int> inside = 0;
    test::crew crew;
    for (int i = 0; i < 8; ++i) {
      crew.either(i, [&] {
        std::shared_lock guard(m);
        ++inside;
        test::await([&] { return inside.load() == 8; });  // for ever, if one was kept out
      });
    }
  });
}

TEST_P(shared_mutex, try_locks_say_what_may_be_had) {
  here([] {
    weft::shared_mutex m;
    test::expect_that_try_locks_say_what_may_be_had(m);
  });
}

TEST_P(shared_mutex, a_waiting_writer_holds_back_new_readers) {
  here([] {
    weft::shared_mutex m;
    m.lock_shared();
    std::atomic<bool> written = false;
    test::crew crew;
    crew.goroutine([&] {
      m.lock();
      written = true;
      m.unlock();
    });
    test::await_waiting_writer(m);
    crew.thread([&] {
      std::shared_lock guard(m);
      EXPECT_TRUE(written.load());
    });
    EXPECT_FALSE(m.try_lock_shared());
    EXPECT_FALSE(written.load());
    m.unlock_shared();
  });
}

TEST_P(shared_mutex, readers_and_writers_never_meet) {
  here([] {
    weft::shared_mutex m;
    const int each = static_cast<int>(test::scaled(3000, 500, 300));
    std::atomic<int> readers = 0;
    std::atomic<int> writers = 0;
    long written = 0;
    {
      test::crew crew;
      for (int i = 0; i < 4; ++i) {
        crew.either(i, [&] {
          for (int k = 0; k < each; ++k) {
            std::unique_lock guard(m);
            EXPECT_EQ(writers.fetch_add(1), 0);
            EXPECT_EQ(readers.load(), 0);
            ++written;
            if (k % 64 == 0) weft::yield();
            --writers;
          }
        });
      }
      for (int i = 0; i < 8; ++i) {
        crew.either(i, [&] {
          for (int k = 0; k < each; ++k) {
            std::shared_lock guard(m);
            ++readers;
            EXPECT_EQ(writers.load(), 0);
            const long seen = written;
            if (k % 64 == 0) weft::yield();
            EXPECT_EQ(written, seen);
            --readers;
          }
        });
      }
    }
    EXPECT_EQ(written, 4l * each);
  });
}

TEST_P(shared_mutex, try_locks_and_locks_mix) {
  here([] {
    weft::shared_mutex m;
    const int each = static_cast<int>(test::scaled(3000, 500, 300));
    long count = 0;
    std::atomic<long> expected = 0;
    {
      test::crew crew;
      for (int i = 0; i < 6; ++i) {
        crew.either(i, [&, i] {
          for (int k = 0; k < each; ++k) {
            if ((k + i) % 3 == 0) {
              if (!m.try_lock()) continue;
              ++count;
              ++expected;
              m.unlock();
            } else if ((k + i) % 3 == 1) {
              if (m.try_lock_shared()) m.unlock_shared();
            } else {
              std::unique_lock guard(m);
              ++count;
              ++expected;
            }
          }
        });
      }
    }
    EXPECT_EQ(count, expected.load());
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

// Each reader takes it again before it lets go, by turns with another, so that there is always one inside.
TEST_P(shared_mutex, a_stream_of_readers_does_not_starve_a_writer) {
  here([] {
    weft::shared_mutex m;
    std::atomic<bool> stop = false;
    test::crew crew;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&] {
        while (!stop) {
          std::shared_lock guard(m);
          weft::yield();
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      std::unique_lock guard(m);
      weft::yield();
    }
    stop = true;
  });
}

TEST_P(shared_mutex, a_stream_of_writers_does_not_starve_a_reader) {
  here([] {
    weft::shared_mutex m;
    std::atomic<bool> stop = false;
    test::crew crew;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&] {
        while (!stop) {
          std::unique_lock guard(m);
          weft::yield();
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      std::shared_lock guard(m);
      weft::yield();
    }
    stop = true;
  });
}

TEST(shared_mutex_phases, readers_that_waited_come_together_before_the_next_writer) {
  weft::run(
      [] {
        weft::shared_mutex m;
        std::vector<char> order;
        weft::mutex order_lock;
        const auto note = [&](char c) {
          std::lock_guard guard(order_lock);
          order.push_back(c);
        };
        weft::wait_group all;
        const auto begin = [&](auto body) {
          const auto before = test::parks();
          all.go(body);
          test::await_parks(before + 1);
        };
        m.lock();
        begin([&] {
          std::unique_lock guard(m);
          note('w');
        });
        begin([&] {
          std::shared_lock guard(m);
          note('r');
        });
        begin([&] {
          std::unique_lock guard(m);
          note('w');
        });
        begin([&] {
          std::shared_lock guard(m);
          note('r');
        });
        m.unlock();
        all.wait();
        EXPECT_EQ(std::string(order.begin(), order.end()), "rrww");
      },
      {.procs = 1});
}

TEST_P(shared_mutex, may_be_destroyed_by_who_got_it_last) {
  here([] {
    struct shared_object {
      weft::shared_mutex m;
      std::atomic<int> owners = 3;
      void release(int i) {
        bool last = false;
        if (i == 1) {
          m.lock();
          last = --owners == 0;
          m.unlock();
        } else {
          m.lock_shared();
          last = --owners == 0;
          m.unlock_shared();
        }
        // Others may still be inside: the exclusive lock says that they are not.
        if (last) {
          m.lock();
          m.unlock();
          delete this;
        }
      }
    };
    const int rounds = static_cast<int>(test::scaled(3000, 500, 300));
    std::vector<std::atomic<shared_object*>> objects(static_cast<std::size_t>(rounds));
    for (auto& o : objects) o = new shared_object;
    test::crew crew;
    for (int i = 0; i < 3; ++i) {
      crew.either(i, [&, i] {
        for (auto& o : objects) o.load()->release(i);
      });
    }
  });
}

}  // namespace
