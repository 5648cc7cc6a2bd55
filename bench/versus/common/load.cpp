#include "load.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

extern char** environ;

namespace bench {
namespace {

std::string load_program() {
  if (const char* path = std::getenv("NET_LOAD")) return path;
  char self[PATH_MAX] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) return "net-load";
  const std::string path(self);
  return path.substr(0, path.rfind('/') + 1) + "net-load";
}

}  // namespace

outcome run_load(std::uint16_t port, load_shape shape, std::uint64_t requests) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  std::string words[] = {load_program(), std::to_string(port), std::to_string(shape.connections), std::to_string(requests),
                         shape.kind};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, argv[0], &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failure != 0) return {.ops = 1, .ok = false, .extra = {}};
  char byte;
  const bool connected = ::read(ends[0], &byte, 1) == 1;
  const stopwatch watch;
  std::string made;  // how many requests, if not as many as it was asked to
  while (::read(ends[0], &byte, 1) > 0) made += byte;
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  if (!made.empty()) requests = std::stoull(made);
  outcome out = watch.stop(requests, connected && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  out.extra.emplace_back("requests_per_s", static_cast<double>(requests) * 1e9 / static_cast<double>(out.wall.count()));
  return out;
}

}  // namespace bench
