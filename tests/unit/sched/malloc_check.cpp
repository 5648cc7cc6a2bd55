// Builds that can watch malloc end the program where the runtime calls it and cannot be stopped.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "arch/sanitizer.h"
#include "sched/section.h"
#include "support/subprocess.h"

namespace {

const test::scenario allocates_in_a_section("allocates_in_a_section", [] {
  weft::run([] {
    const weft::sched::section inside;
    void* volatile memory = std::malloc(10);
    std::free(memory);
  });
});

TEST(malloc_check, ends_a_program_whose_runtime_allocates_where_it_cannot_be_stopped) {
  const test::outcome end = allocates_in_a_section.run();
  if (weft::arch::under_sanitizer) {
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_NE(end.err.find("malloc or free in the runtime"), std::string::npos) << end;
  } else {
    EXPECT_FALSE(end.died()) << end;
  }
}

}  // namespace
