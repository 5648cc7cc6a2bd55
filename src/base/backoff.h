// A wait for something that another thread is about to do within some instructions. If it takes longer, the kernel has taken
// that thread off its core: then this one gives up its own, and soon sleeps. Only to yield would not do. Who yields stays
// runnable, and a kernel under load can go on choosing such threads before the one that all of them wait for.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "base/pause.h"

namespace weft::base {

class backoff {
 public:
  // With how many pauses it begins, and how long it sleeps at most.
  explicit backoff(int pauses = 100, long longest_nap_ns = 1'000'000) noexcept : pauses_(pauses), longest_nap_ns_(longest_nap_ns) {}

  void once() noexcept {
    if (pauses_ > 0) {
      --pauses_;
      cpu_pause();
    } else if (yields_ > 0) {
      --yields_;
      ::sched_yield();
    } else {
      nap();
    }
  }

 private:
  [[gnu::cold, gnu::noinline]] void nap() noexcept {
    const timespec t{0, nap_ns_};
    const int before = errno;  // a signal may cut the nap short, and the goroutine's errno is not ours
    ::nanosleep(&t, nullptr);
    errno = before;
    nap_ns_ = std::min(2 * nap_ns_, longest_nap_ns_);
  }

  int pauses_;
  int yields_ = 16;
  long nap_ns_ = 20'000;
  long longest_nap_ns_;
};

}  // namespace weft::base
