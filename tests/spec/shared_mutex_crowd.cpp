// shared_mutex with readers that got in each other's way: they have spread out, and everything else is as before.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/migrate.h"
#include "support/shared_mutex.h"

namespace {

// The lock's counters are a cache line a P, and all tests here have two Ps. (The runtime's own records are larger.)
constexpr std::size_t slots_size = 2 * 64;
std::atomic<int> spreads{0};

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t a) {
  const auto alignment = static_cast<std::size_t>(a);
  if (size == slots_size) ++spreads;
  void* p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t a) { return operator new(size, a); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {

template <class F>
void on_two_ps(F f) {
  weft::run(f, {.procs = 2});
}

// Two goroutines that read at the same time, until they have spread out. On one CPU they never meet; all that is asked here
// holds for a lock without a crowd too.
void crowd(weft::shared_mutex& m) {
  if (weft::runtime::num_cpu() < 2) return;
  const int before = spreads;
  test::crew readers;
  for (int i = 0; i < 2; ++i) {
    readers.goroutine([&] {
      test::spin_until([&] {
        for (int reads = 0; reads < 1000; ++reads) std::shared_lock guard(m);
        weft::checkpoint();
        return spreads != before;
      });
    });
  }
}

TEST(shared_mutex_crowd, a_reader_alone_needs_no_memory) {
  on_two_ps([] {
    const int before = spreads;
    weft::shared_mutex m;
    for (int i = 0; i < 100'000; ++i) std::shared_lock guard(m);
    EXPECT_EQ(spreads, before);
  });
}

TEST(shared_mutex_crowd, memory_is_allocated_once) {
  on_two_ps([] {
    weft::shared_mutex m;
    crowd(m);
    const int after = spreads;
    for (int i = 0; i < 1000; ++i) {
      std::lock_guard guard(m);
    }
    test::crew readers;
    for (int i = 0; i < 4; ++i) {
      readers.goroutine([&] {
        for (int reads = 0; reads < 20'000; ++reads) std::shared_lock guard(m);
      });
    }
    readers.wait();
    EXPECT_EQ(spreads, after);
  });
}

TEST(shared_mutex_crowd, try_locks_say_what_may_be_had) {
  on_two_ps([] {
    weft::shared_mutex m;
    crowd(m);
    test::expect_that_try_locks_say_what_may_be_had(m);
  });
}

TEST(shared_mutex_crowd, a_writer_waits_for_a_reader_that_has_moved_to_another_p) {
  on_two_ps([] {
    weft::shared_mutex m;
    crowd(m);
    m.lock_shared();
    test::resume_on_another_thread();
    std::atomic<bool> written = false;
    test::crew writer;
    writer.goroutine([&] {
      std::lock_guard guard(m);
      written = true;
    });
    test::await_waiting_writer(m);
    EXPECT_FALSE(written);
    m.unlock_shared();
    writer.wait();
    EXPECT_TRUE(written);
  });
}

TEST(shared_mutex_crowd, a_reader_that_moved_leaves_nothing_behind) {
  on_two_ps([] {
    weft::shared_mutex m;
    crowd(m);
    m.lock_shared();
    test::resume_on_another_thread();
    m.unlock_shared();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TEST(shared_mutex_crowd, plain_threads_and_goroutines_keep_each_other_out) {
  on_two_ps([] {
    weft::shared_mutex m;
    crowd(m);
    const int turns = test::under_sanitizer ? 2'000 : 20'000;
    long a = 0, b = 0;
    std::atomic<int> writes = 0;
    {
      test::crew crew;
      for (int i = 0; i < 6; ++i) {
        crew.either(i, [&, i] {
          for (int turn = 1; turn <= turns; ++turn) {
            if ((turn + i) % 50 == 0) {
              std::lock_guard guard(m);
              ++a;
              ++writes;
              ++b;
            } else {
              std::shared_lock guard(m);
              EXPECT_EQ(a, b);
              if (turn % 100 == 7 && weft::in_goroutine()) weft::yield();
            }
          }
        });
      }
    }
    EXPECT_EQ(a, writes);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

// Who leaves last destroys the lock: nobody who has left may touch it.
TEST(shared_mutex_crowd, can_be_destroyed_as_soon_as_the_last_has_left) {
  struct shared_object {
    weft::shared_mutex m;
    int users = 2;  // behind m
  };
  on_two_ps([] {
    for (int i = 0; i < (test::under_sanitizer ? 100 : 1'000); ++i) {
      auto* object = new shared_object;
      crowd(object->m);
      test::crew crew;
      for (int user = 0; user < 2; ++user) {
        crew.goroutine([object] {
          for (int reads = 0; reads < 50; ++reads) std::shared_lock guard(object->m);
          bool last = false;
          {
            std::lock_guard guard(object->m);
            last = --object->users == 0;
          }
          if (last) return delete object;
        });
      }
    }
  });
}

// The same with a writer that leaves to a reader.
TEST(shared_mutex_crowd, can_be_destroyed_by_a_reader_while_the_writer_is_on_its_way_out) {
  struct shared_object {
    weft::shared_mutex m;
    bool finished = false;  // behind m
  };
  on_two_ps([] {
    for (int i = 0; i < (test::under_sanitizer ? 100 : 1'000); ++i) {
      auto* object = new shared_object;
      crowd(object->m);
      test::crew crew;
      crew.goroutine([object] {
        object->m.lock();
        object->finished = true;
        object->m.unlock();
      });
      crew.goroutine([object] {
        for (bool finished = false; !finished;) {
          std::shared_lock guard(object->m);
          finished = object->finished;
        }
        delete object;
      });
    }
  });
}

}  // namespace
