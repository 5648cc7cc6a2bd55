// Moves the calling goroutine to another thread.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>
#include <weft/weft.h>

#include <atomic>
#include <memory>

#include "support/await.h"

namespace test {

inline long thread_id() { return ::syscall(SYS_gettid); }

namespace detail {

struct relay {
  std::atomic<bool> runs_elsewhere{false};
  std::atomic<bool> this_thread_is_taken{false};
  std::atomic<bool> resumed{false};
};

// One goroutine keeps the other P busy until a second one keeps ours; then the first ends and so readies the caller,
// for which only the first one's P is free.
inline void pass_to_the_other_p() {
  auto state = std::make_shared<relay>();
  auto elsewhere = weft::async([state] {
    state->runs_elsewhere = true;
    spin_until([&] { return state->this_thread_is_taken.load(); });
  });
  weft::go([] {});  // pushes the one above out of runnext, to where it can be stolen
  spin_until([&] { return state->runs_elsewhere.load(); });
  weft::go([state] {
    state->this_thread_is_taken = true;
    spin_until([&] { return state->resumed.load(); });
  });
  elsewhere.wait();
  state->resumed = true;
}

}  // namespace detail

// Parks the calling goroutine and returns on another thread than it was called on. Needs procs = 2, and nobody else who
// keeps a P busy, not even by yielding.
inline void resume_on_another_thread() {
  const long before = thread_id();
  hang_limit limit(__FILE__, __LINE__);
  while (thread_id() == before) {
    detail::pass_to_the_other_p();
    limit.check();
  }
}

}  // namespace test
