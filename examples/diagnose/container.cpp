// Symptom: slower in a container than on the host.
// Cause: more Ps than the cgroup's quota has CPUs for. All of them run, the quota is used up early in each period, and then
// the whole program stands still until the next. `weft env` shows quota and choice; left alone, weft follows the quota. Here
// the number is forced, as an inherited WEFTPROCS or a number in the code would do it.
#include "figures.h"

int main() {
  const int right = weft::runtime::max_procs();  // what weft chooses here
  return weft::run(
      [&] {
        std::printf("weft would choose %d, and was told otherwise:\n", right);
        const double procs = show("/sched/gomaxprocs:threads");
        std::printf("  %-45s %d\n", "CPUs that the process may use", weft::runtime::num_cpu());
        return verdict(procs > right, "more Ps than the machine gives");
      },
      {.procs = right * 4});
}
