// The walk over a stack finds what the C++ runtime's own finds, from inside a goroutine and from outside.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gmp/current.h"
#include "gmp/machine.h"
#include "os/unwind.h"
#include "sched/stack.h"
#include "support/anywhere.h"

namespace {

using weft::os::code_map;
using weft::os::unwind;

std::vector<std::uintptr_t> reference() {
  std::vector<std::uintptr_t> pcs;
  ::_Unwind_Backtrace(
      [](_Unwind_Context* c, void* v) {
        int before = 0;
        const auto pc = ::_Unwind_GetIPInfo(c, &before);
        if (pc != 0) static_cast<std::vector<std::uintptr_t>*>(v)->push_back(pc - (before == 0 ? 1 : 0));
        return _URC_NO_REASON;
      },
      &pcs);
  return pcs;
}

weft::os::stack_bounds bounds_of(const weft::gmp::goroutine* g) {
  return {reinterpret_cast<std::uintptr_t>(g->stack_low), reinterpret_cast<std::uintptr_t>(g)};
}

// The callers are the same for both walks, but for the frames in which they are made.
void compare(std::vector<std::uintptr_t> ours, std::vector<std::uintptr_t> theirs, std::size_t least) {
  ASSERT_GE(ours.size(), least);
  ASSERT_GE(theirs.size(), least);
  // The last frames first: as many as both have, up to the frame of the test.
  const std::size_t common = std::min(ours.size(), theirs.size()) - 2;
  for (std::size_t i = 1; i <= common; ++i) {
    EXPECT_EQ(ours[ours.size() - i], theirs[theirs.size() - i]) << i << " from the end";
  }
}

[[gnu::noinline]] int deep(int n, const code_map& code, std::vector<std::uintptr_t>& ours, std::vector<std::uintptr_t>& theirs,
                           weft::os::stack_bounds bounds) {
  volatile char room[100] = {};
  if (n > 0) return deep(n - 1, code, ours, theirs, bounds) + room[n];
  ours.resize(64);
  ours.resize(unwind(code, weft::os::here(), bounds, ours.data(), ours.size()));
  theirs = reference();
  return room[0];
}

TEST(a_walk_over_its_own_stack, agrees_with_the_cxx_runtime) {
  weft::run([] {
    const code_map code = code_map::read();
    std::vector<std::uintptr_t> ours, theirs;
    deep(10, code, ours, theirs, bounds_of(weft::gmp::current_machine()->curg));
    compare(ours, theirs, 11);
  });
}

// As it is with a thread that sleeps in the kernel. In builds with frame pointers the frames are searched for.
[[gnu::noinline]] int deep_without_frame_pointer(int n, const code_map& code, std::vector<std::uintptr_t>& ours,
                                                 std::vector<std::uintptr_t>& theirs, weft::os::stack_bounds bounds) {
  volatile char room[100] = {};
  if (n > 0) return deep_without_frame_pointer(n - 1, code, ours, theirs, bounds) + room[n];
  ours.resize(64);
  weft::os::machine_state here = weft::os::here();
  here.fp = 0;
  ours.resize(unwind(code, here, bounds, ours.data(), ours.size()));
  theirs = reference();
  return room[0];
}

TEST(a_walk_over_its_own_stack, needs_no_frame_pointer_to_begin_with) {
  weft::run([] {
    const code_map code = code_map::read();
    std::vector<std::uintptr_t> ours, theirs;
    deep_without_frame_pointer(10, code, ours, theirs, bounds_of(weft::gmp::current_machine()->curg));
    compare(ours, theirs, 11);
    EXPECT_GE(ours.size() + 1, theirs.size());
  });
}

TEST(a_walk_over_its_own_stack, passes_through_frames_that_are_aligned_anew) {
  weft::run([] {
    const code_map code = code_map::read();
    std::vector<std::uintptr_t> ours, theirs;
    const auto aligned = [&](auto& self, int n) -> int {
      alignas(128) volatile char room[256] = {};
      if (n > 0) return self(self, n - 1) + room[n];
      deep(2, code, ours, theirs, bounds_of(weft::gmp::current_machine()->curg));
      return room[0];
    };
    aligned(aligned, 4);
    compare(ours, theirs, 6);
  });
}

TEST(a_walk, ends_where_the_bounds_say) {
  weft::run([] {
    const code_map code = code_map::read();
    std::vector<std::uintptr_t> ours(64), theirs;
    const auto here = weft::os::here();
    EXPECT_EQ(unwind(code, here, {here.sp, here.sp}, ours.data(), 64), 1u);
    EXPECT_EQ(unwind(code, here, bounds_of(weft::gmp::current_machine()->curg), ours.data(), 2), 2u);
    EXPECT_EQ(unwind(code, {1, here.sp, here.fp}, bounds_of(weft::gmp::current_machine()->curg), ours.data(), 64), 1u);
  });
}

TEST(a_walk_over_a_parked_goroutine, reaches_its_first_frame_wherever_it_waits) {
  weft::run(
      [] {
        const code_map code = code_map::read();
        weft::chan<int> gate;
        weft::mutex locked;
        weft::wait_group wg;
        weft::condition_variable cv;
        weft::mutex m;
        bool open = false;
        wg.add();
        locked.lock();
        test::crew crew;
        const auto parks = test::parks();
        crew.goroutine([&] { gate.recv(); });
        crew.goroutine([&] { weft::select(weft::on_recv(gate), weft::on_timeout(std::chrono::hours(1))); });
        crew.goroutine([&] { weft::select(weft::on_recv(gate), weft::on_recv(weft::chan<int>(nullptr))); });
        crew.goroutine([&] {
          locked.lock();
          locked.unlock();
        });
        crew.goroutine([&] { wg.wait(); });
        crew.goroutine([&] {
          std::unique_lock lock(m);
          cv.wait(lock, [&] { return open; });
        });
        test::await_parks(parks + 6);
        int seen = 0;
        const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(&weft::arch::weft_goroutine_start);
        weft::sched::for_each_goroutine([&](const weft::gmp::goroutine& g) {
          if (g.state.load() != weft::gmp::status::waiting) return;
          std::uintptr_t pcs[64];
          const auto& c = g.context;
          const std::size_t n = unwind(code,
                                       {reinterpret_cast<std::uintptr_t>(c.pc), reinterpret_cast<std::uintptr_t>(c.sp),
                                        reinterpret_cast<std::uintptr_t>(c.fp)},
                                       bounds_of(&g), pcs, 64);
          EXPECT_GE(n, 4u);
          EXPECT_GE(pcs[n - 1], last) << to_string(g.reason.get());
          EXPECT_LE(pcs[n - 1], last + 32) << to_string(g.reason.get());
          ++seen;
        });
        EXPECT_EQ(seen, 6);
        gate.close();
        locked.unlock();
        wg.done();
        {
          std::lock_guard lock(m);
          open = true;
        }
        cv.notify_all();
        crew.wait();
      },
      {.procs = 1});
}

}  // namespace
