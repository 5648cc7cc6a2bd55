// What the kernel tells about threads of this process.
#include "os/thread_state.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "support/await.h"

namespace {

using weft::os::is_asleep;
using weft::os::look_at_thread;
using weft::os::thread_view;

TEST(a_thread, that_runs_is_seen_to_run) {
  std::atomic<int> tid = 0;
  std::atomic<bool> over = false;
  std::thread runner([&] {
    tid = ::gettid();
    while (!over) {
    }
  });
  test::await([&] { return tid != 0 && look_at_thread(tid).now == thread_view::running && !is_asleep(tid); });
  over = true;
  runner.join();
}

TEST(a_thread, that_sleeps_in_the_kernel_is_seen_there_with_its_place_and_stack) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<int> tid = 0;
  std::atomic<std::uintptr_t> frame = 0;
  std::atomic<long> result = 0;
  std::thread sleeper([&] {
    frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    tid = ::gettid();
    pollfd p{ends[0], POLLIN, 0};
    result = ::poll(&p, 1, -1);
  });
  test::await([&] { return tid != 0 && look_at_thread(tid).now == thread_view::asleep; });
  EXPECT_TRUE(is_asleep(tid));
  const thread_view seen = look_at_thread(tid);
  if (seen.pc != 0) {  // else this kernel does not tell
    Dl_info info{};
    ASSERT_NE(::dladdr(reinterpret_cast<void*>(seen.pc), &info), 0);
    EXPECT_LT(seen.sp, frame.load());
    EXPECT_GT(seen.sp, frame.load() - 4096);
    EXPECT_EQ(look_at_thread(tid), seen);
  }
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  sleeper.join();
  EXPECT_EQ(result, 1) << "the looks have cut the call short";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(a_thread, that_is_not_of_this_process_is_not_known) {
  EXPECT_EQ(look_at_thread(1 << 30).now, thread_view::unknown);
  EXPECT_FALSE(is_asleep(1 << 30));
}

}  // namespace
