#include "os/cpu_count.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sched.h>

namespace weft::os {
namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

struct cgroup_path {
  std::string controllers;  // empty: v2
  std::string path;
};

// /proc/self/cgroup has lines "id:controllers:path".
std::vector<cgroup_path> own_cgroups(const std::string& root) {
  std::vector<cgroup_path> all;
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto a = line.find(':');
    const auto b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    all.push_back({line.substr(a + 1, b - a - 1), line.substr(b + 1)});
  }
  return all;
}

bool has_cpu_controller(const std::string& list) {
  std::stringstream in(list);
  for (std::string one; std::getline(in, one, ',');) {
    if (one == "cpu") return true;
  }
  return false;
}

// "max 100000" or "150000 100000".
std::optional<double> read_v2(const std::string& dir) {
  const auto line = first_line(dir + "/cpu.max");
  if (!line) return std::nullopt;
  std::stringstream in(*line);
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  const double q = std::strtod(quota.c_str(), nullptr);
  if (q <= 0) return std::nullopt;  // not a number
  return q / period;
}

std::optional<double> read_v1(const std::string& dir) {
  const auto quota = first_line(dir + "/cpu.cfs_quota_us");
  const auto period = first_line(dir + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  const double q = std::strtod(quota->c_str(), nullptr);
  const double p = std::strtod(period->c_str(), nullptr);
  if (q <= 0 || p <= 0) return std::nullopt;
  return q / p;
}

// The limit of a group is the tightest among itself and its ancestors. In a container the path in /proc may not exist
// under the mount: the mount's root is then the group itself, and is looked at last anyway.
template <class Read>
std::optional<double> tightest(const std::string& mount, std::string path, Read read) {
  std::optional<double> limit;
  const auto consider = [&](const std::string& dir) {
    if (const auto q = read(dir)) limit = limit ? std::min(*limit, *q) : *q;
  };
  while (path.size() > 1) {
    consider(mount + path);
    path.erase(path.find_last_of('/'));
  }
  consider(mount);
  return limit;
}

}  // namespace

int affinity_cpus() noexcept {
  // The kernel wants a mask at least as large as its own.
  for (int cpus = 1024; cpus <= (1 << 18); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int rc = ::sched_getaffinity(0, bytes, set);
    const int n = rc == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (rc == 0) return std::max(n, 1);
  }
  return 1;
}

std::optional<double> cgroup_quota(const std::string& root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  std::optional<double> limit;
  for (const cgroup_path& g : own_cgroups(root)) {
    std::optional<double> q;
    if (g.controllers.empty()) {
      q = tightest(mounts, g.path, read_v2);
      if (!q) q = tightest(mounts + "/unified", g.path, read_v2);  // beside hierarchies of v1
    } else if (has_cpu_controller(g.controllers)) {
      q = tightest(mounts + "/" + g.controllers, g.path, read_v1);
      if (!q) q = tightest(mounts + "/cpu", g.path, read_v1);
    }
    if (q) limit = limit ? std::min(*limit, *q) : *q;
  }
  return limit;
}

int procs_for(int cpus, std::optional<double> quota) noexcept {
  if (!quota) return cpus;
  return std::min(cpus, std::max(2, static_cast<int>(std::ceil(std::min(*quota, 1e6)))));
}

int default_procs() { return procs_for(affinity_cpus(), cgroup_quota()); }

}  // namespace weft::os
