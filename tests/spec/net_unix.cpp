// Unix sockets, streams and datagrams.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "support/anywhere.h"
#include "support/net.h"

namespace {

using namespace std::chrono_literals;
using test::error_of;
namespace net = weft::net;

std::string fresh_path() {
  static std::atomic<int> number = 0;
  return (std::filesystem::temp_directory_path() / ("weft-" + std::to_string(::getpid()) + "-" + std::to_string(++number)))
      .string();
}

class unix_socket : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, unix_socket, test::everywhere(), test::name_of);

TEST_P(unix_socket, a_stream_carries_bytes_both_ways) {
  here([] {
    const std::string path = fresh_path();
    net::listener listener = net::listen_unix(path);
    EXPECT_EQ(listener.local_address().to_string(), path);
    net::conn out = net::dial_unix(path);
    net::conn in = listener.accept();
    const std::string large(std::size_t{2} << 20, 'z');
    test::crew crew;
    crew.goroutine([&] {
      out.write(large);
      out.shutdown_write();
    });
    EXPECT_EQ(test::read_all(in), large);
    in.write("done");
    in.close();
    EXPECT_EQ(test::read_all(out), "done");
  });
}

TEST_P(unix_socket, the_end_of_writing_wakes_who_writes) {
  here([] {
    const std::string path = fresh_path();
    net::listener listener = net::listen_unix(path);
    net::conn out = net::dial_unix(path);
    net::conn in = listener.accept();
    const std::string large(std::size_t{8} << 20, 'z');
    test::crew crew;
    crew.goroutine([&] {
      EXPECT_EQ(error_of([&](std::error_code& ec) { out.write(large, ec); }), std::errc::broken_pipe);
    });
    test::await_io_wait();
    out.shutdown_write();
    crew.wait();
  });
}

TEST_P(unix_socket, closing_a_listener_removes_its_path_and_wakes_who_accepts) {
  here([] {
    const std::string path = fresh_path();
    net::listener listener = net::listen_unix(path);
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_EQ(error_of([&](std::error_code& ec) { net::listen_unix(path, ec); }), std::errc::address_in_use);
    test::crew crew;
    crew.goroutine([&] {
      EXPECT_EQ(error_of([&](std::error_code& ec) { listener.accept(ec); }), std::errc::operation_canceled);
    });
    test::await_io_wait();
    listener.close();
    EXPECT_FALSE(std::filesystem::exists(path));
    crew.wait();
    { net::listener again = net::listen_unix(path); }
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(error_of([&](std::error_code& ec) { net::dial_unix(path, ec); }), std::errc::no_such_file_or_directory);
  });
}

TEST_P(unix_socket, abstract_names_leave_nothing_in_the_file_system) {
  here([] {
    const std::string name = "@" + std::filesystem::path(fresh_path()).filename().string();
    net::listener listener = net::listen_unix(name);
    EXPECT_EQ(listener.local_address().to_string(), name);
    net::conn out = net::dial_unix(name);
    net::conn in = listener.accept();
    out.write("x");
    char byte;
    EXPECT_EQ(in.read({&byte, 1}), 1u);
  });
}

// A listener whose queue has no room.
struct full_listener {
  const std::string path = fresh_path();
  net::listener listener = net::listen_unix(path, {.backlog = 1});
  std::vector<net::conn> queued;

  full_listener() {
    std::error_code ec;
    while (!ec) queued.push_back(net::dial_unix(path, {.timeout = 5ms}, ec));
    EXPECT_EQ(ec, std::errc::timed_out);
  }
};

TEST_P(unix_socket, a_dial_waits_for_room_in_the_listeners_queue) {
  here([] {
    full_listener full;
    test::crew crew;
    crew.goroutine([&] { EXPECT_TRUE(net::dial_unix(full.path)); });
    EXPECT_TRUE(full.listener.accept());
    crew.wait();
  });
}

TEST_P(unix_socket, a_dial_uses_all_of_the_time_that_it_has) {
  here([] {
    const full_listener full;
    for (const auto timeout : {20ms, 50ms}) {
      std::error_code ec;
      const auto began = std::chrono::steady_clock::now();
      net::dial_unix(full.path, {.timeout = timeout}, ec);
      EXPECT_EQ(ec, std::errc::timed_out);
      EXPECT_GE(std::chrono::steady_clock::now() - began, timeout);
    }
  });
}

TEST_P(unix_socket, datagrams_arrive_whole_and_a_full_queue_is_waited_for) {
  here([] {
    const std::string from_path = fresh_path();
    const std::string to_path = fresh_path();
    {
      net::udp_socket a = net::bind_unixgram(from_path);
      net::udp_socket b = net::bind_unixgram(to_path);
      constexpr int count = 500;  // more than a queue holds
      test::crew crew;
      crew.goroutine([&] {
        for (int i = 0; i < count; ++i) a.send_to(std::to_string(i), b.local_address());
      });
      std::array<char, 16> buffer;
      for (int i = 0; i < count; ++i) {
        const auto [n, from] = b.recv_from(buffer);
        ASSERT_EQ(std::string(buffer.data(), n), std::to_string(i));
        ASSERT_EQ(from.to_string(), from_path);
      }
    }
    EXPECT_FALSE(std::filesystem::exists(from_path));
    EXPECT_FALSE(std::filesystem::exists(to_path));
  });
}

TEST(unix_path, a_path_that_is_too_long_is_an_error) {
  EXPECT_EQ(error_of([](std::error_code& ec) { net::listen_unix(std::string(200, 'x'), ec); }), std::errc::filename_too_long);
}

TEST(unix_path, says_what_is_wrong_with_it) {
  const auto code_of = [](std::string_view path) {
    try {
      net::address::of_path(path);
      return std::error_code();
    } catch (const std::system_error& e) {
      return e.code();
    }
  };
  EXPECT_EQ(code_of(std::string_view("a\0b", 3)), std::errc::invalid_argument);
  EXPECT_EQ(code_of(std::string(200, 'a')), std::errc::filename_too_long);
}

TEST(unix_path, a_path_with_a_zero_in_it_is_an_error) {
  EXPECT_EQ(error_of([](std::error_code& ec) { net::listen_unix(std::string_view("/tmp/weft\0x", 11), ec); }), std::errc::invalid_argument);
}

// No event says that the queue of a receiver to whom the socket is not connected has room again.
TEST(unix_datagrams, to_a_full_receiver_wait_without_computing) {
  weft::run([] {
    const std::string from = fresh_path(), to = fresh_path();
    net::udp_socket sender = net::bind_unixgram(from);
    net::udp_socket receiver = net::bind_unixgram(to);
    std::error_code ec;
    const auto cpu_ms = [] {
      timespec used;
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
      return used.tv_sec * 1000 + used.tv_nsec / 1'000'000;
    };
    sender.set_deadline(std::chrono::steady_clock::now() + 1s);
    const auto before = cpu_ms();
    int sent = 0;
    for (; !ec; ++sent) sender.send_to("x", receiver.local_address(), ec);
    EXPECT_EQ(ec, std::errc::timed_out);
    EXPECT_LT(cpu_ms() - before, 500);  // of a second
    sender.set_deadline(std::chrono::steady_clock::time_point::max());
    test::crew crew;
    crew.goroutine([&] { EXPECT_EQ(sender.send_to("last", receiver.local_address()), 4u); });
    std::array<std::byte, 16> buffer;
    for (int i = 0; i < sent - 1; ++i) EXPECT_EQ(receiver.recv_from(buffer).first, 1u);
    EXPECT_EQ(receiver.recv_from(buffer).first, 4u);
  });
}

}  // namespace
