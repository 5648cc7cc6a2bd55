// versus-weft: the workloads of bench/versus in weft.
#include <weft/version.h>
#include <weft/weft.h>

#include "../common/harness.h"

namespace {

void enter(const std::string& workload, int procs, const std::function<void()>& body) {
  const weft::options options{.procs = procs};
  if (workload == "idle") {  // is about a runtime in which no goroutine exists, so its body is not one
    weft::start(options);
    body();
    weft::shutdown();
  } else {
    weft::run(body, options);
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, "weft", WEFT_VERSION_STRING, enter); }
