// The text of a fatal report, and the end of the program.
#include "base/fatal.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <thread>

namespace {

using weft::base::fatal;
using weft::base::text;

template <class T>
std::string written(const T& value) {
  text t;
  t << value;
  return std::string(t.view());
}

TEST(text, shows_unsigned_numbers) {
  EXPECT_EQ(written(std::uint32_t{0}), "0");
  EXPECT_EQ(written(std::uint32_t{4294967295u}), "4294967295");
  EXPECT_EQ(written(std::uint64_t{10}), "10");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

TEST(text, shows_signed_numbers) {
  EXPECT_EQ(written(std::int32_t{0}), "0");
  EXPECT_EQ(written(std::int32_t{-1}), "-1");
  EXPECT_EQ(written(std::numeric_limits<std::int32_t>::min()), "-2147483648");
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

TEST(text, shows_pointers_in_hexadecimal) {
  EXPECT_EQ(written(static_cast<const void*>(nullptr)), "0x0");
  EXPECT_EQ(written(reinterpret_cast<const void*>(std::uintptr_t{0xf})), "0xf");
  EXPECT_EQ(written(reinterpret_cast<const void*>(std::uintptr_t{0x7fff1234abcd})), "0x7fff1234abcd");
  EXPECT_EQ(written(reinterpret_cast<const void*>(~std::uintptr_t{0})), "0xffffffffffffffff");
}

TEST(text, strings_its_parts_together) {
  text t;
  t << "goroutine " << std::uint64_t{7} << ": " << std::string_view("ab\0c", 4) << " at "
    << static_cast<const void*>(nullptr);
  EXPECT_EQ(t.view(), std::string_view("goroutine 7: ab\0c at 0x0", 24));
}

TEST(text, cuts_what_does_not_fit) {
  text t;
  const std::string long_one(600, 'a');
  t << long_one << std::string(600, 'b');
  EXPECT_EQ(t.view(), std::string(600, 'a') + std::string(424, 'b'));
  t << "more" << std::uint64_t{1} << static_cast<const void*>(&t);
  EXPECT_EQ(t.view().size(), 1024u);
}

TEST(text, cuts_a_number_in_its_middle) {
  text t;
  t << std::string(1022, 'a') << std::uint64_t{12345};
  EXPECT_EQ(t.view().substr(1022), "12");
}

TEST(text, is_empty_after_clear) {
  text t;
  t << std::string(2000, 'a');
  t.clear();
  EXPECT_EQ(t.view(), "");
  t << "again";
  EXPECT_EQ(t.view(), "again");
}

TEST(print, writes_to_stderr_and_empties_the_text) {
  text t;
  t << "to be " << std::uint32_t{2};
  testing::internal::CaptureStderr();
  t.print();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "to be 2");
  EXPECT_EQ(t.view(), "");
}

// stderr is a pipe for as long as this lives.
class stderr_pipe {
 public:
  stderr_pipe() : saved_(::dup(STDERR_FILENO)) {
    if (::pipe(ends_) != 0 || saved_ < 0) std::abort();
    ::dup2(ends_[1], STDERR_FILENO);
  }
  ~stderr_pipe() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }

 private:
  int ends_[2];
  int saved_;
};

TEST(print, gives_up_quietly_when_nobody_can_read) {
  void (*const before)(int) = ::signal(SIGPIPE, SIG_IGN);
  const int saved = ::dup(STDERR_FILENO);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  ::dup2(ends[1], STDERR_FILENO);
  text t;
  t << "lost";
  t.print();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(ends[1]);
  ::signal(SIGPIPE, before);
  EXPECT_EQ(t.view(), "");
}

TEST(print, writes_all_of_it_to_a_pipe_that_is_nearly_full) {
  std::string received;
  std::size_t filled = 0;
  {
    stderr_pipe pipe;
    const std::string line(511, '.');
    for (pollfd room{pipe.writer(), POLLOUT, 0}; ::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0;) {
      const ssize_t n = ::write(pipe.writer(), line.data(), line.size());
      if (n < 0) break;
      filled += static_cast<std::size_t>(n);
    }
    std::thread reader([&] {
      char buffer[100];
      while (received.size() < filled + 1000) {
        const ssize_t n = ::read(pipe.reader(), buffer, sizeof buffer);
        if (n <= 0) break;
        received.append(buffer, static_cast<std::size_t>(n));
      }
    });
    text t;
    t << std::string(1000, 'x');
    t.print();
    reader.join();
  }
  EXPECT_EQ(received.substr(filled), std::string(1000, 'x'));
}

TEST(fatal, says_what_it_was_given_and_aborts) {
  EXPECT_EXIT(fatal("nothing is as it was"), testing::KilledBySignal(SIGABRT), "^fatal error: nothing is as it was\n$");
  EXPECT_EXIT(fatal("P ", 3, " has ", std::uint64_t{2}, " owners at ", static_cast<const void*>(nullptr)),
              testing::KilledBySignal(SIGABRT), "^fatal error: P 3 has 2 owners at 0x0\n$");
}

TEST(fatal, cuts_a_message_that_is_too_long_and_still_aborts) {
  EXPECT_EXIT(fatal(std::string_view(std::string(5000, 'm'))), testing::KilledBySignal(SIGABRT), "^fatal error: m+");
}

}  // namespace
