#include "os/affinity.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "support/await.h"

namespace {

using namespace weft;

os::cpu_mask allowed() {
  os::cpu_mask mask{};
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) os::add(mask, i);
  }
  return mask;
}

bool is_same(const os::cpu_mask& a, const os::cpu_mask& b) {
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (os::contains(a, i) != os::contains(b, i)) return false;
  }
  return true;
}

TEST(cpu_mask, holds_what_was_added_and_forgets_what_does_not_fit) {
  os::cpu_mask mask{};
  for (const int cpu : {0, 63, 64, 1023, -1, 1024}) os::add(mask, cpu);
  for (const int cpu : {0, 63, 64, 1023}) EXPECT_TRUE(os::contains(mask, cpu));
  for (const int cpu : {-1, 1, 62, 65, 1024}) EXPECT_FALSE(os::contains(mask, cpu));
}

// A thread that never sleeps, and says on which core it is.
class runner {
 public:
  runner() : thread_([this] { run(); }) {
    while (tid == 0) std::this_thread::yield();
  }
  ~runner() {
    stop_ = true;
    thread_.join();
  }

  std::atomic<pid_t> tid{0};
  std::atomic<int> cpu{-1};
  std::atomic<const std::uint32_t*> word{nullptr};

 private:
  void run() {
    word = os::current_cpu_word();
    cpu = ::sched_getcpu();
    tid = ::gettid();
    while (!stop_) cpu = ::sched_getcpu();
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(a_running_thread, is_moved_off_cores_and_may_use_them_again) {
  const os::cpu_mask all = allowed();
  runner r;
  os::cpu_mask before{};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!os::contains(all, cpu)) continue;
    os::cpu_mask taken{};
    os::add(taken, cpu);
    if (is_same(taken, all)) return;  // the only one
    // It may come back before anybody looks: until it has been seen elsewhere.
    test::await([&] { return os::move_off(r.tid, taken) && r.cpu != cpu; });
    ASSERT_TRUE(os::keep_off(r.tid, cpu, before));
    EXPECT_TRUE(is_same(before, all)) << "move_off left it restricted";
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (os::contains(all, i)) CPU_SET(i, &set);
    }
    ASSERT_EQ(::sched_setaffinity(r.tid, sizeof set, &set), 0);
  }
}

TEST(a_running_thread, is_put_on_a_core_if_it_has_not_too_many) {
  const os::cpu_mask all = allowed();
  int count = 0, last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!os::contains(all, cpu)) continue;
    ++count;
    last = cpu;
  }
  runner r;
  os::cpu_mask before{};
  EXPECT_FALSE(os::put_on(r.tid, last, count - 1, before)) << "it has more";
  EXPECT_FALSE(os::put_on(r.tid, last + 1, count, before)) << "it may not use that one";
  ASSERT_TRUE(os::put_on(r.tid, last, count, before));
  EXPECT_TRUE(is_same(before, all));
  test::await([&] { return r.cpu == last; });
}

TEST(a_running_thread, is_not_moved_if_there_is_nowhere_to_go) {
  runner r;
  EXPECT_FALSE(os::move_off(r.tid, allowed()));
}

TEST(a_running_thread, is_moved_as_one_of_ours_only_if_it_may_use_the_cores_that_we_may) {
  const os::cpu_mask all = allowed();
  runner r;
  test::await([&] { return r.cpu >= 0; });
  const int here = r.cpu;
  os::cpu_mask taken{};
  os::add(taken, here);
  if (is_same(taken, all)) return;  // the only one
  test::await([&] { return os::move_off_if_like_ours(r.tid, taken) && r.cpu != here; });
  os::cpu_mask before{};
  ASSERT_TRUE(os::keep_off(r.tid, here, before));
  EXPECT_TRUE(is_same(before, all)) << "it was left restricted";
  os::cpu_mask nothing{};
  EXPECT_FALSE(os::move_off_if_like_ours(r.tid, nothing)) << "somebody keeps it off a core";
}

TEST(a_running_thread, can_be_seen_on_its_core_from_outside) {
  runner r;
  const std::uint32_t* word = r.word;
  if (word == nullptr) GTEST_SKIP() << "this C library or kernel has no rseq";
  test::await([&] { return static_cast<int>(__atomic_load_n(word, __ATOMIC_RELAXED)) == r.cpu; });
}

}  // namespace
