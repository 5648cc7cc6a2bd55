// versus-threads: the workloads of bench/versus with a thread where the others have a goroutine, and the standard
// library's primitives. P is the number of CPUs that the threads may use. Counts are small (see
// bench/compare/lines.py): a thread costs a thousand goroutines.
#include <sched.h>

#include <cstdlib>

#include "threads.h"

namespace bench {

void confine_to(int cpus) {
  cpu_set_t allowed;
  cpu_set_t wanted;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) std::abort();
  CPU_ZERO(&wanted);
  for (int cpu = 0, left = cpus; cpu < CPU_SETSIZE && left > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &wanted);
    --left;
  }
  if (::sched_setaffinity(0, sizeof wanted, &wanted) != 0) std::abort();
}

}  // namespace bench

int main(int argc, char** argv) {
  const auto enter = [](const std::string& workload, int procs, const std::function<void()>& body) {
    // The load of the network workloads is a child that would inherit this: their servers confine themselves.
    if (!bench::is_network(workload)) bench::confine_to(procs);
    body();
  };
  return bench::run_program(argc, argv, "threads", "-", enter);
}
