// weft: the command line tool.
//
//   weft version   which weft this is
//   weft env       what weft sees on this machine, what it will do about it, and why
//   weft trace F   what the execution trace in file F says
#include <weft/version.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "os/cpu_count.h"
#include "os/memory.h"
#include "sched/stack.h"
#include "trace_summary.h"

namespace {

// ---- env ------------------------------------------------------------------------------------------------------------

void row(const char* name, const std::string& value, const std::string& why) {
  std::printf("%-16s %-24s %s\n", name, value.c_str(), why.c_str());
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string decimal(double d) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", d);
  return text;
}

int environment_procs() {
  const std::string text = variable("WEFTPROCS");
  char* end = nullptr;
  const long n = std::strtol(text.c_str(), &end, 10);
  return !text.empty() && *end == '\0' && n >= 1 && n <= weft::sched::max_procs_limit ? static_cast<int>(n) : 0;
}

void show_cpus() {
  const int online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const int allowed = weft::os::affinity_cpus();
  const auto quota = weft::os::cgroup_quota();
  row("cpus", std::to_string(online), "online");
  row("affinity", std::to_string(allowed),
      allowed < online ? "this process may use only these (taskset, cpuset)" : "this process may use all of them");
  row("cgroup quota", quota ? decimal(*quota) : "none", quota ? "CPUs, the tightest limit up the tree" : "no CPU limit in this cgroup or above");
}

void show_procs() {
  const int set = environment_procs();
  const std::string given = variable("WEFTPROCS");
  if (set != 0) return row("procs", std::to_string(set), "WEFTPROCS says so");
  const int procs = weft::os::default_procs();
  const auto quota = weft::os::cgroup_quota();
  std::string why = quota && *quota < weft::os::affinity_cpus() ? "the cgroup's quota, rounded up, but at least 2 if there are 2 CPUs"
                                                               : "one for each CPU that the process may use";
  if (!given.empty()) why += "; WEFTPROCS=" + given + " is ignored: not a number from 1 to " + std::to_string(weft::sched::max_procs_limit);
  row("procs", std::to_string(procs), why);
}

bool debug_has(std::string_view setting) {
  return ("," + variable("WEFTDEBUG") + ",").find("," + std::string(setting) + ",") != std::string::npos;
}

void show_guards() {
  if (debug_has("guard=mprotect")) {
    return row("stack guards", "mprotect", "WEFTDEBUG says so: two mappings a stack, limited by vm.max_map_count");
  }
  const bool guard_install = weft::os::probe_guard_mode() == weft::os::guard_mode::guard_install;
  row("stack guards", guard_install ? "MADV_GUARD_INSTALL" : "mprotect",
      guard_install ? "guards split no mapping: stacks are limited by memory only"
                    : "no MADV_GUARD_INSTALL (Linux 6.13): two mappings a stack, limited by vm.max_map_count");
}

void show_kernel() {
  utsname name{};
  ::uname(&name);
  row("kernel", name.release, name.machine);
  show_guards();
  const bool membarrier = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  row("membarrier", membarrier ? "yes" : "no",
      membarrier ? "a P can be taken from a goroutine in user code" : "the world stops only when every goroutine calls into weft");
#ifdef SYS_epoll_pwait2
  epoll_event event{};
  ::syscall(SYS_epoll_pwait2, -1, &event, 1, nullptr, nullptr, 0);
  const bool pwait2 = errno != ENOSYS;
#else
  const bool pwait2 = false;
#endif
  row("epoll_pwait2", pwait2 ? "yes" : "no", pwait2 ? "timers are waited for in nanoseconds" : "timers are waited for in milliseconds (Linux 5.11 has better)");
}

void show_tools() {
  const bool libdw = ::dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
  row("libdw", libdw ? "yes" : "no", libdw ? "dumps have functions, files and lines" : "dumps have addresses for addr2line (Debian: libdw1)");
  row("stack size", std::to_string(weft::sched::default_stack), "bytes reserved for a goroutine's stack, by default");
  const std::string debug = variable("WEFTDEBUG");
  row("WEFTDEBUG", debug.empty() ? "-" : debug, debug.empty() ? "not set" : "read when a program starts the runtime");
}

int env(const char*) {
  show_cpus();
  show_procs();
  show_kernel();
  show_tools();
  return 0;
}

// ---- the tool -------------------------------------------------------------------------------------------------------

int version(const char*) {
  std::printf("weft %s\n", WEFT_VERSION_STRING);
  return 0;
}

int trace(const char* file) { return tool::summarize_trace(file); }

struct command {
  std::string_view name;
  const char* argument;  // null: it has none
  const char* summary;
  int (*run)(const char* argument);
};

constexpr command commands[] = {
    {"version", nullptr, "which weft this is", &version},
    {"env", nullptr, "what weft sees on this machine, and what it does about it", &env},
    {"trace", "FILE", "what the execution trace in FILE says (weft::trace::start)", &trace},
};

int usage(std::FILE* to) {
  std::fprintf(to, "usage: weft COMMAND\n\n");
  for (const command& c : commands) {
    const std::string call = std::string(c.name) + (c.argument != nullptr ? std::string(" ") + c.argument : "");
    std::fprintf(to, "  %-12s %s\n", call.c_str(), c.summary);
  }
  return to == stdout ? 0 : 2;
}

int run(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  if (wanted == "help" || wanted == "--help" || wanted == "-h") return usage(stdout);
  if (wanted == "--version") return version(nullptr);
  for (const command& c : commands) {
    if (c.name == wanted && argc == (c.argument != nullptr ? 3 : 2)) return c.run(argv[argc - 1]);
  }
  return usage(stderr);
}

// A full disk is found out about when the text goes there.
int with_output_written(int code) {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return code;
  std::fprintf(stderr, "weft: cannot write: %s\n", failed_before ? "the output has failed" : std::strerror(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) { return with_output_written(run(argc, argv)); }
