#include "os/cpu_count.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sched.h>

namespace weft::os {
namespace {

// Files that tell limits. One that is not there sets none; one that cannot be opened at the moment, for want of descriptors or memory,
// may.
class limit_files {
 public:
  std::ifstream open(const std::string& path) {
    errno = 0;
    std::ifstream in(path);
    if (!in && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR)) all_opened_ = false;
    return in;
  }
  bool all_opened() const noexcept { return all_opened_; }

 private:
  bool all_opened_ = true;
};

std::optional<std::string> first_line(limit_files& files, const std::string& path) {
  std::ifstream in = files.open(path);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

struct cgroup_path {
  std::string controllers;  // empty: v2
  std::string path;
};

// /proc/self/cgroup has lines "id:controllers:path".
std::vector<cgroup_path> own_cgroups(limit_files& files, const std::string& root) {
  std::vector<cgroup_path> all;
  std::ifstream in = files.open(root + "/proc/self/cgroup");
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
std::optional<double> read_v2(limit_files& files, const std::string& dir) {
  const auto line = first_line(files, dir + "/cpu.max");
  if (!line) return std::nullopt;
  std::stringstream in(*line);
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  const double q = std::strtod(quota.c_str(), nullptr);
  if (q <= 0) return std::nullopt;  // not a number
  return q / period;
}

std::optional<double> read_v1(limit_files& files, const std::string& dir) {
  const auto quota = first_line(files, dir + "/cpu.cfs_quota_us");
  const auto period = first_line(files, dir + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  const double q = std::strtod(quota->c_str(), nullptr);
  const double p = std::strtod(period->c_str(), nullptr);
  if (q <= 0 || p <= 0) return std::nullopt;
  return q / p;
}

// The limit of a group is the tightest among itself and its ancestors. In a container the path in /proc may not exist
// under the mount: the mount's root is then the group itself, and is looked at last anyway.
template <class Read>
std::optional<double> tightest(limit_files& files, const std::string& mount, std::string path, Read read) {
  std::optional<double> limit;
  const auto consider = [&](const std::string& dir) {
    if (const auto q = read(files, dir)) limit = limit ? std::min(*limit, *q) : *q;
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

std::optional<double> cgroup_quota(const std::string& root, bool* certain) {
  const std::string mounts = root + "/sys/fs/cgroup";
  limit_files files;
  std::optional<double> limit;
  for (const cgroup_path& g : own_cgroups(files, root)) {
    std::optional<double> q;
    if (g.controllers.empty()) {
      q = tightest(files, mounts, g.path, read_v2);
      if (!q) q = tightest(files, mounts + "/unified", g.path, read_v2);  // beside hierarchies of v1
    } else if (has_cpu_controller(g.controllers)) {
      q = tightest(files, mounts + "/" + g.controllers, g.path, read_v1);
      if (!q) q = tightest(files, mounts + "/cpu", g.path, read_v1);
    }
    if (q) limit = limit ? std::min(*limit, *q) : *q;
  }
  if (certain != nullptr) *certain = files.all_opened();
  return limit;
}

int procs_for(int cpus, std::optional<double> quota) noexcept {
  if (!quota) return cpus;
  return std::min(cpus, std::max(2, static_cast<int>(std::ceil(std::min(*quota, 1e6)))));
}

int default_procs(bool* certain) { return procs_for(affinity_cpus(), cgroup_quota("", certain)); }

}  // namespace weft::os
