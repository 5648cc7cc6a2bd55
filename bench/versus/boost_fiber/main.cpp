// versus-boost-fiber: the workloads of bench/versus in Boost.Fiber. One thread runs its default round robin, several
// steal work from each other.
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#include "fibers.h"

namespace {

// Idle threads of the work_stealing scheduler either spin, or sleep and are not woken when there is work to steal. Each
// workload gets what serves it better: those that have work for all threads spin, those that are one chain of events
// would only be torn apart.
const std::set<std::string> shares_work{"conserve", "fib", "load70", "parked", "skynet", "skynet_join", "sleepers", "steal_burst"};

void steal_with(int threads, bool spin) {
  boost::fibers::use_scheduling_algorithm<boost::fibers::algo::work_stealing>(static_cast<std::uint32_t>(threads),
                                                                              !spin);
}

[[noreturn]] void serve(int threads, bool spin, std::barrier<>& all_registered) {
  steal_with(threads, spin);
  all_registered
      .arrive_and_wait();  // a thief looks at every scheduler, and one that is not there yet is a null pointer
  boost::fibers::mutex mutex;
  boost::fibers::condition_variable never;
  std::unique_lock lock(mutex);
  for (;;) never.wait(lock);
}

void enter(const std::string& workload, int procs, const std::function<void()>& body) {
  if (procs > 1) {
    const bool spin = shares_work.contains(workload);
    static std::barrier<> all_registered(procs);
    for (int i = 1; i < procs; ++i) std::thread([=] { serve(procs, spin, all_registered); }).detach();
    steal_with(procs, spin);
    all_registered.arrive_and_wait();
  }
  body();
}

}  // namespace

int main(int argc, char** argv) {
  const int code = bench::run_program(argc, argv, "boost_fiber", BOOST_LIB_VERSION, enter);
  std::fflush(stdout);
  std::_Exit(code);  // the other threads never return
}
