// The CPU limit of a cgroup: how it is read, of any version, and that a running program follows it. The first is tested
// on folders that look like the kernel's; the second in a cgroup made for it, where this process may make one.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/weft.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "os/cpu_count.h"
#include "support/await.h"
#include "support/subprocess.h"

namespace {

int pretended_cpus = 0;

}  // namespace

// weft never has fewer than 2 Ps because of a quota, so that on a machine of 2 CPUs nothing of it would show. This
// takes the place of libc's.
extern "C" int sched_getaffinity(pid_t tid, std::size_t bytes, cpu_set_t* set) noexcept {
  CPU_ZERO_S(bytes, set);  // the kernel writes no more than it has CPUs for
  if (pretended_cpus == 0) return ::syscall(SYS_sched_getaffinity, tid, bytes, set) < 0 ? -1 : 0;
  for (int cpu = 0; cpu < pretended_cpus; ++cpu) CPU_SET_S(cpu, bytes, set);
  return 0;
}

namespace {

using namespace std::chrono_literals;
using weft::os::affinity_cpus;
using weft::os::cgroup_quota;
using weft::os::procs_for;
namespace fs = std::filesystem;

// ---- reading -------------------------------------------------------------------------------------------------------

class reading_a_quota : public testing::Test {
 protected:
  reading_a_quota() {
    std::string name = (fs::temp_directory_path() / "weft-cgroup-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  ~reading_a_quota() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void expect(double quota) {
    const auto found = cgroup_quota(root_);
    ASSERT_TRUE(found.has_value());
    EXPECT_DOUBLE_EQ(*found, quota);
  }
  void expect_none() { EXPECT_FALSE(cgroup_quota(root_).has_value()); }

  std::string root_;
};

TEST_F(reading_a_quota, finds_none_where_there_is_no_cgroup) { expect_none(); }

TEST_F(reading_a_quota, is_not_certain_while_no_file_can_be_opened) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  bool certain = false;
  EXPECT_EQ(cgroup_quota(root_, &certain), 2.0);
  EXPECT_TRUE(certain);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  cgroup_quota(root_, &certain);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(certain);
}

TEST_F(reading_a_quota, of_v2_takes_quota_by_period) {
  write("/proc/self/cgroup", "0::/shop/till\n");
  write("/sys/fs/cgroup/shop/till/cpu.max", "150000 100000\n");
  expect(1.5);
  write("/sys/fs/cgroup/shop/till/cpu.max", "600000 200000\n");
  expect(3);
  write("/sys/fs/cgroup/shop/till/cpu.max", "max 100000\n");
  expect_none();
}

TEST_F(reading_a_quota, takes_the_tightest_limit_up_the_tree) {
  write("/proc/self/cgroup", "0::/shop/till\n");
  write("/sys/fs/cgroup/shop/till/cpu.max", "800000 100000\n");
  write("/sys/fs/cgroup/shop/cpu.max", "200000 100000\n");
  expect(2);
  write("/sys/fs/cgroup/shop/till/cpu.max", "max 100000\n");
  expect(2);
}

TEST_F(reading_a_quota, in_a_container_looks_at_the_root_of_the_mount) {
  write("/proc/self/cgroup", "0::/a/path/of/the/hosts\n");
  write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  expect(4);
}

TEST_F(reading_a_quota, of_v1_finds_the_cpu_controller_under_either_name) {
  write("/proc/self/cgroup", "5:memory:/elsewhere\n3:cpu,cpuacct:/shop\n0::/\n");
  write("/sys/fs/cgroup/cpu,cpuacct/shop/cpu.cfs_quota_us", "250000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/shop/cpu.cfs_period_us", "100000\n");
  expect(2.5);
  fs::rename(root_ + "/sys/fs/cgroup/cpu,cpuacct", root_ + "/sys/fs/cgroup/cpu");
  expect(2.5);
  write("/sys/fs/cgroup/cpu/shop/cpu.cfs_quota_us", "-1\n");
  expect_none();
}

TEST_F(reading_a_quota, of_v2_beside_v1_looks_into_the_unified_hierarchy) {
  write("/proc/self/cgroup", "5:memory:/elsewhere\n0::/shop\n");
  write("/sys/fs/cgroup/unified/shop/cpu.max", "300000 100000\n");
  expect(3);
}

TEST_F(reading_a_quota, ignores_what_makes_no_sense) {
  write("/proc/self/cgroup", "nonsense\n0::/shop\n");
  for (const char* text : {"", "\n", "100000", "max", "100000 0", "many 100000x"}) {
    write("/sys/fs/cgroup/shop/cpu.max", text);
    expect_none();
  }
}

TEST(the_number_of_ps, is_the_quota_rounded_up_but_two_at_least_and_the_cpus_at_most) {
  EXPECT_EQ(procs_for(8, std::nullopt), 8);
  EXPECT_EQ(procs_for(8, 0.5), 2);
  EXPECT_EQ(procs_for(8, 2.0), 2);
  EXPECT_EQ(procs_for(8, 2.01), 3);
  EXPECT_EQ(procs_for(8, 64), 8);
  EXPECT_EQ(procs_for(8, 1e300), 8);
  EXPECT_EQ(procs_for(1, 4), 1);
}

// ---- following -----------------------------------------------------------------------------------------------------

// A cgroup for one process, below the one that this process is in.
class cgroup {
 public:
  cgroup() {
    // v2 has the controller in a child group only if it is handed down to it.
    for (const char* base : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      std::ofstream(std::string(base) + "/cgroup.subtree_control") << "+cpu";
      if (make(base, "/cpu.max")) {
        is_v2_ = true;
        return;
      }
    }
    for (const char* base : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
      if (make(base, "/cpu.cfs_quota_us")) return;
    }
    path_.clear();
  }
  cgroup(const cgroup&) = delete;
  // As soon as its process has gone.
  ~cgroup() {
    if (!path_.empty()) test::await([&] { return ::rmdir(path_.c_str()) == 0; });
  }

  bool exists() const { return !path_.empty(); }
  bool move_in(pid_t process) const { return put("/cgroup.procs", std::to_string(process)); }
  bool set_quota(double cpus) const {
    const std::string microseconds = std::to_string(static_cast<long>(cpus * 100'000));
    return is_v2_ ? put("/cpu.max", microseconds + " 100000") : put("/cpu.cfs_quota_us", microseconds);
  }
  bool set_unlimited() const { return is_v2_ ? put("/cpu.max", "max 100000") : put("/cpu.cfs_quota_us", "-1"); }

 private:
  bool make(const std::string& base, const std::string& file) {
    path_ = base + "/weft-test-" + std::to_string(::getpid());
    if (::mkdir(path_.c_str(), 0755) != 0) return false;
    if (::access((path_ + file).c_str(), W_OK) == 0) return true;
    ::rmdir(path_.c_str());
    return false;
  }
  bool put(const std::string& file, const std::string& text) const {
    std::ofstream out(path_ + file);
    return static_cast<bool>(out << text << std::flush);
  }

  std::string path_;
  bool is_v2_ = false;
};

// Exit codes of the processes below.
constexpr int fine = 0, no_cgroup = 40, tight_already = 41, one_cpu = 42;

// By an outer process that stays out of the cgroup and can remove it: `body` in a child that is in it.
template <class Body>
void in_a_cgroup_of_its_own(Body body) {
  int code = no_cgroup;
  {
    const cgroup group;
    if (group.exists()) {
      const pid_t child = ::fork();
      if (child == 0) {
        if (!group.move_in(::getpid())) ::_exit(no_cgroup);
        ::_exit(body(group));
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    }
  }
  ::_exit(code);
}

#define EXPECT_IN_CGROUP(scenario)                                                                        \
  const auto end = scenario.run();                                                                        \
  if (end.exit_code == no_cgroup) GTEST_SKIP() << "this process may not make a cgroup with a CPU limit";  \
  if (end.exit_code == tight_already) GTEST_SKIP() << "this process has a CPU limit that leaves no room"; \
  EXPECT_EQ(end.exit_code, fine) << end

const test::scenario reads_it("reads_it", [] {
  in_a_cgroup_of_its_own([](const cgroup& group) {
    for (const double cpus : {0.5, 1.0, 3.0, 2.5}) {
      group.set_quota(cpus);
      const auto quota = cgroup_quota();
      if (!quota || *quota > cpus + 0.001 || *quota < 0.001) return 1;
    }
    return fine;
  });
});

TEST(the_quota, of_a_real_cgroup_is_read_as_it_changes) { EXPECT_IN_CGROUP(reads_it); }

const test::scenario follows_it("follows_it", [] {
  in_a_cgroup_of_its_own([](const cgroup& group) {
    pretended_cpus = 8;
    const auto outer = cgroup_quota();
    if (outer && *outer < 5) return tight_already;
    group.set_quota(2);
    return weft::run([&] {
      if (weft::runtime::max_procs() != 2) return 2;
      group.set_quota(4.2);
      test::await([] { return weft::runtime::max_procs() == 5; });
      group.set_quota(3);
      test::await([] { return weft::runtime::max_procs() == 3; });
      group.set_quota(1);
      test::await([] { return weft::runtime::max_procs() == 2; });
      group.set_unlimited();
      test::await([] { return weft::runtime::max_procs() == procs_for(affinity_cpus(), cgroup_quota()); });
      return fine;
    });
  });
});

TEST(max_procs, follows_the_quota_while_the_program_runs) { EXPECT_IN_CGROUP(follows_it); }

// What it has been told counts more.
const test::scenario was_told("was_told", [] {
  in_a_cgroup_of_its_own([](const cgroup& group) {
    return weft::run(
        [&] {
          group.set_quota(0.9);
          for (int i = 0; i < 30; ++i) weft::sleep_for(100ms);  // three times as long as it takes
          return weft::runtime::max_procs() == 5 ? fine : 3;
        },
        {.procs = 5});
  });
});

TEST(max_procs, does_not_follow_the_quota_once_it_was_set) { EXPECT_IN_CGROUP(was_told); }

// All threads of this process: each has a mask of its own.
void limit_all_threads_to(int cpus) {
  cpu_set_t all, some;
  CPU_ZERO(&all);
  CPU_ZERO(&some);
  ::sched_getaffinity(1, sizeof all, &all);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < cpus; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &some);
  }
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    ::sched_setaffinity(std::stoi(task.path().filename()), sizeof some, &some);
  }
}

const test::scenario follows_affinity("follows_affinity", [] {
  const int all = affinity_cpus();
  if (all < 2) ::_exit(one_cpu);
  ::_exit(weft::run([&] {
    if (weft::runtime::max_procs() != procs_for(all, cgroup_quota())) return 4;
    limit_all_threads_to(1);
    test::await([] { return weft::runtime::max_procs() == 1; });
    limit_all_threads_to(2);
    test::await([] { return weft::runtime::max_procs() == 2; });
    return fine;
  }));
});

TEST(max_procs, follows_the_affinity_mask_while_the_program_runs) {
  const auto end = follows_affinity.run();
  if (end.exit_code == one_cpu) GTEST_SKIP() << "there is only one CPU";
  EXPECT_EQ(end.exit_code, fine) << end;
}

}  // namespace
