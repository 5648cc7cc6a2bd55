// The first start of a process, where the system does not give what it needs.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <system_error>

#include <sys/resource.h>

#include "support/subprocess.h"

namespace {

// What start needs and the system does not give is an error of the caller's.
const test::scenario starts_without_descriptors("starts_without_descriptors", [] {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  try {
    weft::run([] {});
    std::exit(3);
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::too_many_files_open) std::exit(4);
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  std::exit(weft::run([] { return 7; }));
});
TEST(a_start, that_fails_for_want_of_descriptors_throws_and_may_be_tried_again) {
  const auto end = starts_without_descriptors.run();
  EXPECT_EQ(end.exit_code, 7) << end;
}

}  // namespace
