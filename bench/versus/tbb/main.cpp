// versus-tbb: the workloads of bench/versus that oneTBB has something for: tasks that fork and join, and its locks. A
// task runs on the stack of whoever waits for it and cannot wait itself except for tasks, so there are no channels
// here, no sleep and no yield.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/version.h>

#include "../common/harness.h"

namespace {

void enter(const std::string&, int procs, const std::function<void()>& body) {
  const auto threads = static_cast<std::size_t>(procs);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena(procs).execute(body);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, "tbb", TBB_VERSION_STRING, enter); }
