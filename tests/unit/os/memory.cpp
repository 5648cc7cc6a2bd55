// Memory straight from the kernel, and guard pages in it.
#include "os/memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using weft::os::guard_mode;
using weft::os::install_guards;
using weft::os::map_huge;
using weft::os::map_memory;
using weft::os::page_size;
using weft::os::probe_guard_mode;
using weft::os::release_pages;
using weft::os::reserve_stacks;

class mapped {
 public:
  mapped(void* at, std::size_t bytes) : at_(static_cast<std::byte*>(at)), bytes_(bytes) {}
  mapped(const mapped&) = delete;
  mapped& operator=(const mapped&) = delete;
  ~mapped() { ::munmap(at_, bytes_); }
  std::byte* at(std::size_t offset) const { return at_ + offset; }
  std::byte* page(std::size_t n) const { return at_ + n * page_size; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* at_;
  std::size_t bytes_;
};

bool is_zero(const std::byte* at, std::size_t bytes) {
  return std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; });
}

std::size_t resident_pages(const mapped& m) {
  std::vector<unsigned char> pages(m.size() / page_size);
  EXPECT_EQ(::mincore(m.at(0), m.size(), pages.data()), 0);
  return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; }));
}

// Whether the page can be read: the kernel looks for us, and says EFAULT where we would get a SIGSEGV.
class prober {
 public:
  prober() {
    if (::pipe(ends_) != 0) std::abort();
  }
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;
  ~prober() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  bool can_read(const void* at) {
    if (::write(ends_[1], at, 1) != 1) {
      EXPECT_EQ(errno, EFAULT);
      return false;
    }
    char byte;
    EXPECT_EQ(::read(ends_[0], &byte, 1), 1);
    return true;
  }

 private:
  int ends_[2];
};

TEST(mapped_memory, is_zero_and_can_be_written) {
  constexpr std::size_t bytes = 10 * page_size;
  const mapped m(map_memory(bytes), bytes);
  EXPECT_TRUE(is_zero(m.at(0), bytes));
  std::fill(m.at(0), m.at(bytes), std::byte{0x5a});
  EXPECT_EQ(*m.at(bytes - 1), std::byte{0x5a});
}

TEST(mapped_memory, that_cannot_be_had_is_fatal_and_says_how_much_it_was) {
  EXPECT_DEATH(map_memory(std::size_t{1} << 62), "fatal error: cannot map 4611686018427387904 bytes for the runtime");
}

TEST(huge_memory, is_aligned_to_two_megabytes_and_all_there) {
  constexpr std::size_t huge = 2 * 1024 * 1024;
  for (const std::size_t bytes : {huge, 2 * huge}) {
    const mapped m(map_huge(bytes), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(m.at(0)) % huge, 0u);
    for (std::size_t at = 0; at < bytes; at += page_size) {
      ASSERT_EQ(*m.at(at), std::byte{0});
      *m.at(at) = std::byte{1};
    }
  }
}

TEST(reserved_stacks, are_not_resident_until_they_are_touched) {
  constexpr std::size_t bytes = 64 * 1024 * 1024;
  void* const at = reserve_stacks(bytes);
  ASSERT_NE(at, nullptr);
  const mapped m(at, bytes);
  EXPECT_EQ(resident_pages(m), 0u);
  *m.at(bytes / 2) = std::byte{1};
  EXPECT_EQ(resident_pages(m), 1u);
}

TEST(reserved_stacks, are_null_where_there_is_no_room) { EXPECT_EQ(reserve_stacks(std::size_t{1} << 62), nullptr); }

TEST(released_pages, are_not_resident_and_read_as_zero) {
  constexpr std::size_t bytes = 16 * page_size;
  const mapped m(reserve_stacks(bytes), bytes);
  std::fill(m.at(0), m.at(bytes), std::byte{0x5a});
  EXPECT_EQ(resident_pages(m), 16u);
  release_pages(m.page(4), 8 * page_size);
  EXPECT_EQ(resident_pages(m), 8u);
  EXPECT_TRUE(is_zero(m.page(4), 8 * page_size));
  EXPECT_EQ(*m.page(3), std::byte{0x5a});
  EXPECT_EQ(*m.page(12), std::byte{0x5a});
}

// ---- guards ---------------------------------------------------------------------------------------------------------

class guards : public testing::TestWithParam<guard_mode> {
 protected:
  void SetUp() override {
    if (GetParam() == guard_mode::guard_install && probe_guard_mode() != guard_mode::guard_install) {
      GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(of_each_kind, guards, testing::Values(guard_mode::guard_install, guard_mode::mprotect),
                         [](const auto& mode) -> std::string {
                           return mode.param == guard_mode::guard_install ? "madvise" : "mprotect";
                         });

// In the child of a death test: a sanitizer's own handler must not turn the signal into an exit.
void touch(std::byte* at, bool write) {
  ::signal(SIGSEGV, SIG_DFL);
  if (write) {
    *const_cast<volatile std::byte*>(at) = std::byte{1};
  } else {
    static_cast<void>(*const_cast<volatile std::byte*>(at));
  }
  std::_Exit(0);
}

TEST_P(guards, kill_whoever_touches_them) {
  constexpr std::size_t count = 3;
  constexpr std::size_t stride = 4 * page_size;
  const mapped m(reserve_stacks(count * stride), count * stride);
  ASSERT_TRUE(install_guards(m.at(0), stride, count, GetParam()));
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const guard = m.at(i * stride);
    for (std::byte* at : {guard, guard + 8, guard + page_size - 1}) {
      EXPECT_EXIT(touch(at, true), testing::KilledBySignal(SIGSEGV), "") << "writing to guard " << i;
      EXPECT_EXIT(touch(at, false), testing::KilledBySignal(SIGSEGV), "") << "reading guard " << i;
    }
    EXPECT_EXIT(touch(guard + page_size, true), testing::ExitedWithCode(0), "") << "behind guard " << i;
  }
}

// More than fit into one system call, and a number that is not a multiple of it.
TEST_P(guards, cover_every_page_of_a_batch_and_no_other) {
  for (const std::size_t count : {1, 63, 64, 65, 200}) {
    constexpr std::size_t stride = 3 * page_size;
    const mapped m(reserve_stacks(count * stride), count * stride);
    ASSERT_TRUE(install_guards(m.at(0), stride, count, GetParam()));
    prober probe;
    for (std::size_t page = 0; page < m.size() / page_size; ++page) {
      ASSERT_EQ(probe.can_read(m.page(page)), page % 3 != 0) << "page " << page << " of " << count << " stacks";
    }
  }
}

TEST_P(guards, stay_when_the_pages_around_them_are_released) {
  constexpr std::size_t stride = 8 * page_size;
  const mapped m(reserve_stacks(2 * stride), 2 * stride);
  ASSERT_TRUE(install_guards(m.at(0), stride, 2, GetParam()));
  for (std::byte* stack : {m.at(0), m.at(stride)}) {
    std::fill(stack + page_size, stack + stride, std::byte{1});
    release_pages(stack + page_size, stride - page_size);
  }
  prober probe;
  for (std::byte* stack : {m.at(0), m.at(stride)}) {
    EXPECT_FALSE(probe.can_read(stack));
    EXPECT_TRUE(is_zero(stack + page_size, stride - page_size));
  }
}

TEST_P(guards, do_not_become_resident) {
  constexpr std::size_t stride = 4 * page_size;
  const mapped m(reserve_stacks(64 * stride), 64 * stride);
  ASSERT_TRUE(install_guards(m.at(0), stride, 64, GetParam()));
  EXPECT_EQ(resident_pages(m), 0u);
}

TEST_P(guards, are_refused_where_nothing_is_mapped) {
  constexpr std::size_t stride = 4 * page_size;
  constexpr std::size_t count = 3;
  void* const at = reserve_stacks(count * stride);
  ASSERT_EQ(::munmap(at, count * stride), 0);
  EXPECT_FALSE(install_guards(at, stride, count, GetParam()));
}

}  // namespace
