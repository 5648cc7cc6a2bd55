// How many CPUs this process may use.
#pragma once

#include <optional>
#include <string>

namespace weft::os {

// CPUs in this thread's affinity mask; at least 1.
int affinity_cpus() noexcept;

// The cgroup's CPU bandwidth limit (v2 cpu.max, v1 cfs quota), the tightest one up the tree, in CPUs. None: unlimited.
// `root` is put in front of /proc and /sys. Not `certain`: there are limits that could not be read at the moment.
std::optional<double> cgroup_quota(const std::string& root = "", bool* certain = nullptr);

// Number of Ps for so many CPUs: cut to the quota rounded up but not below 2 (unless only one CPU is allowed): with one
// P a program that is throttled could not overlap anything.
int procs_for(int cpus, std::optional<double> quota) noexcept;

// The same for this process, now.
int default_procs(bool* certain = nullptr);

}  // namespace weft::os
