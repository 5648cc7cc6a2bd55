// Files.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <bitset>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "support/anywhere.h"
#include "support/folder.h"
#include "support/net.h"

namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::folder;
using clock = std::chrono::steady_clock;

std::string content(const std::filesystem::path& path) {
  weft::file f = weft::file::open(path, std::ios::in);
  return test::read_all(f);
}

class file : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, file, test::everywhere(), test::name_of);

TEST_P(file, what_is_written_can_be_read) {
  here([] {
    const folder tmp;
    weft::file f = weft::file::open(tmp / "a", std::ios::out);
    EXPECT_EQ(f.write("hello "), 6u);
    EXPECT_EQ(f.write("world"), 5u);
    EXPECT_EQ(f.size(), 11u);
    f.sync();
    f.close();
    EXPECT_EQ(content(tmp / "a"), "hello world");
  });
}

TEST_P(file, modes_are_those_of_fstream) {
  here([] {
    const folder tmp;
    EXPECT_EQ(error_of([&](std::error_code& ec) { weft::file::open(tmp / "a", std::ios::in, ec); }),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(error_of([&](std::error_code& ec) { weft::file::open(tmp / "a", std::ios::in | std::ios::out, ec); }),
              std::errc::no_such_file_or_directory);
    weft::file::open(tmp / "a", std::ios::out).write("12345");
    weft::file::open(tmp / "a", std::ios::in | std::ios::out).write("ab");
    EXPECT_EQ(content(tmp / "a"), "ab345");
    weft::file::open(tmp / "a", std::ios::app).write("67");
    weft::file::open(tmp / "a", std::ios::out | std::ios::app).write("8");
    EXPECT_EQ(content(tmp / "a"), "ab345678");
    weft::file::open(tmp / "a", std::ios::in | std::ios::out | std::ios::ate).write("9");
    EXPECT_EQ(content(tmp / "a"), "ab3456789");
    weft::file::open(tmp / "a", std::ios::in | std::ios::out | std::ios::trunc).write("new");
    EXPECT_EQ(content(tmp / "a"), "new");
    weft::file::open(tmp / "a", std::ios::out);
    EXPECT_EQ(content(tmp / "a"), "");
    EXPECT_EQ(error_of([&](std::error_code& ec) { weft::file::open(tmp / "a", {}, ec); }), std::errc::invalid_argument);
  });
}

// All of them, with the file there and not there.
TEST(file_modes, agree_with_those_of_fstream) {
  const folder tmp;
  const auto after = [&](bool exists, const auto& use) {
    const std::filesystem::path path = tmp / "x";
    std::filesystem::remove(path);
    if (exists) weft::file::open(path, std::ios::out).write("12345");
    const bool opened = use(path);
    std::string end = std::filesystem::exists(path) ? content(path) : "nothing";
    return end + (opened ? ", opened" : ", failed");
  };
  for (int bits = 0; bits < 32; ++bits) {
    std::ios::openmode mode = std::ios::binary;
    const std::ios::openmode all[] = {std::ios::in, std::ios::out, std::ios::app, std::ios::ate, std::ios::trunc};
    for (int i = 0; i < 5; ++i) {
      if ((bits >> i & 1) != 0) mode |= all[i];
    }
    const bool writes = (mode & (std::ios::out | std::ios::app)) != 0;
    for (const bool exists : {false, true}) {
      const std::string theirs = after(exists, [&](const std::filesystem::path& path) {
        std::fstream f(path, mode);
        if (f.is_open() && writes) f << "ab";
        return f.is_open();
      });
      const std::string ours = after(exists, [&](const std::filesystem::path& path) {
        std::error_code ec;
        weft::file f = weft::file::open(path, mode, ec);
        if (!ec && writes) f.write("ab");
        return !ec;
      });
      EXPECT_EQ(ours, theirs) << "in out app ate trunc: " << std::bitset<5>(static_cast<unsigned>(bits)) << ", exists: " << exists;
    }
  }
}

TEST_P(file, that_is_appended_to_is_not_written_elsewhere) {
  here([] {
    const folder tmp;
    weft::file f = weft::file::open(tmp / "a", std::ios::app);
    f.write("123");
    EXPECT_EQ(error_of([&](std::error_code& ec) { f.write_at("x", 0, ec); }), std::errc::invalid_argument);
    EXPECT_EQ(content(tmp / "a"), "123");
  });
}

TEST_P(file, reads_and_writes_at_an_offset_leave_the_position_alone) {
  here([] {
    const folder tmp;
    weft::file f = weft::file::open(tmp / "a", std::ios::in | std::ios::out | std::ios::trunc);
    EXPECT_EQ(f.write_at("world", 6), 5u);
    EXPECT_EQ(f.write_at("hello ", 0), 6u);
    std::string buffer(5, ' ');
    EXPECT_EQ(f.read_at(buffer, 6), 5u);
    EXPECT_EQ(buffer, "world");
    EXPECT_EQ(f.read_at(buffer, 9), 2u);
    EXPECT_EQ(f.read_at(buffer, 100), 0u);
    EXPECT_EQ(f.read(buffer), 5u);
    EXPECT_EQ(buffer, "hello");
  });
}

TEST_P(file, a_closed_file_fails) {
  here([] {
    const folder tmp;
    weft::file f = weft::file::open(tmp / "a", std::ios::out);
    f.close();
    f.close();
    EXPECT_EQ(error_of([&](std::error_code& ec) { f.write("x", ec); }), std::errc::operation_canceled);
    EXPECT_EQ(error_of([&](std::error_code& ec) { f.size(ec); }), std::errc::operation_canceled);
    EXPECT_EQ(error_of([&](std::error_code& ec) { weft::file().sync(ec); }), std::errc::bad_file_descriptor);
    EXPECT_THROW(weft::file::open(tmp / "no" / "such", std::ios::out), std::filesystem::filesystem_error);
  });
}

TEST_P(file, the_ends_of_a_named_pipe_wait_for_each_other_without_a_thread) {
  here([] {
    const folder tmp;
    const std::filesystem::path path = tmp / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    test::crew crew;
    std::string received;
    crew.goroutine([&] {
      weft::file in = weft::file::open(path, std::ios::in);
      received = test::read_all(in);
    });
    weft::file out = weft::file::open(path, std::ios::out);
    const std::string large(std::size_t{1} << 20, 'p');
    EXPECT_EQ(out.write(large), large.size());
    out.close();
    crew.wait();
    EXPECT_EQ(received, large);
  });
}

TEST_P(file, a_pipe_without_a_reader_is_an_error_and_no_signal) {
  here([] {
    const folder tmp;
    const std::filesystem::path path = tmp / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    weft::file both = weft::file::open(path, std::ios::in | std::ios::out);
    weft::file out = weft::file::open(path, std::ios::out);
    both.set_deadline(clock::now() + 1ms);
    char byte;
    EXPECT_EQ(error_of([&](std::error_code& ec) { both.read({&byte, 1}, ec); }), std::errc::timed_out);
    both.close();
    EXPECT_EQ(error_of([&](std::error_code& ec) { out.write("x", ec); }), std::errc::broken_pipe);
  });
}

TEST(file_blocking, a_goroutine_that_opens_a_pipe_does_not_stall_the_only_p) {
  weft::run(
      [] {
        const folder tmp;
        const std::filesystem::path path = tmp / "pipe";
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
        std::atomic<bool> opened = false;
        weft::wait_group all;
        all.go([&] {
          weft::file::open(path, std::ios::in);  // blocks until somebody writes
          opened = true;
        });
        for (int i = 0; i < 100; ++i) weft::yield();
        EXPECT_FALSE(opened);
        weft::file out = weft::file::open(path, std::ios::out);
        all.wait();
        EXPECT_TRUE(opened);
      },
      {.procs = 1});
}

}  // namespace
