// How many CPUs this process may use.
#include "os/cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

namespace {

using weft::os::affinity_cpus;
using weft::os::cgroup_quota;
using weft::os::default_procs;

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) all.push_back(cpu);
  }
  return all;
}

// On a thread of its own that may use only these CPUs.
template <class Body>
void limited_to(const std::vector<int>& cpus, Body body) {
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
    body();
  }).join();
}

TEST(the_number_of_cpus, is_that_of_the_affinity_mask) {
  EXPECT_EQ(affinity_cpus(), static_cast<int>(allowed_cpus().size()));
}

TEST(the_number_of_cpus, follows_a_change_of_the_affinity_mask) {
  const std::vector<int> cpus = allowed_cpus();
  for (std::size_t n = 1; n <= cpus.size(); ++n) {
    limited_to({cpus.begin(), cpus.begin() + static_cast<std::ptrdiff_t>(n)},
               [n] { EXPECT_EQ(affinity_cpus(), static_cast<int>(n)); });
    limited_to({cpus.end() - static_cast<std::ptrdiff_t>(n), cpus.end()},
               [n] { EXPECT_EQ(affinity_cpus(), static_cast<int>(n)); });
  }
}

TEST(the_default_number_of_ps, is_one_on_one_cpu) {
  limited_to({allowed_cpus().front()}, [] { EXPECT_EQ(default_procs(), 1); });
}

TEST(the_default_number_of_ps, is_at_least_one_and_never_more_than_the_cpus) {
  EXPECT_GE(default_procs(), 1);
  EXPECT_LE(default_procs(), affinity_cpus());
}

TEST(the_default_number_of_ps, is_the_quota_rounded_up_but_two_at_least_where_there_is_one) {
  const auto quota = cgroup_quota();
  if (!quota) {
    EXPECT_EQ(default_procs(), affinity_cpus());
    return;
  }
  EXPECT_GT(*quota, 0);
  EXPECT_EQ(default_procs(), std::min(affinity_cpus(), std::max(2, static_cast<int>(std::ceil(*quota)))));
}

}  // namespace
