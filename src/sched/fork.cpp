#include "sched/fork.h"

#include <atomic>

#include <pthread.h>
#include <unistd.h>

#include "base/fatal.h"
#include "gmp/current.h"
#include "gmp/machine.h"

namespace weft::sched {
namespace {

constinit std::atomic<bool> forked{false};
constinit pid_t runtime_pid = 0;

// In the child, on the thread that called fork(). If a goroutine did, its next call into the runtime finds out.
void in_child() noexcept {
  forked.store(true, std::memory_order_relaxed);
  gmp::machine* m = gmp::current_machine();
  if (m != nullptr) m->revoked.store(gmp::p_forked, std::memory_order_relaxed);
}

}  // namespace

void watch_forks() noexcept {
  runtime_pid = ::getpid();
  ::pthread_atfork(nullptr, nullptr, &in_child);
}

bool in_forked_child() noexcept { return forked.load(std::memory_order_relaxed); }

bool handler_in_forked_child() noexcept { return ::getpid() != runtime_pid; }

void no_runtime_in_child() noexcept {
  base::fatal("weft was called in the child of a fork: the runtime's threads exist only in the parent. A child may exec");
}

}  // namespace weft::sched
