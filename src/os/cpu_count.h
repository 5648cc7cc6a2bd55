// How many CPUs this process may use.
#pragma once

#include <optional>

namespace weft::os {

// CPUs in this thread's affinity mask; at least 1.
int affinity_cpus() noexcept;

// The cgroup's CPU bandwidth limit (v2 cpu.max, v1 cfs quota), the tightest one up the tree, in CPUs. None: unlimited.
std::optional<double> cgroup_quota();

// Number of Ps to use by default: the affinity, cut to the quota rounded up but not below 2 (unless only one CPU is
// allowed): with one P a program that is throttled could not overlap anything.
int default_procs();

}  // namespace weft::os
