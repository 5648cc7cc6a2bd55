// Datagrams.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <system_error>

#include "support/anywhere.h"
#include "support/net.h"

namespace {

using namespace std::chrono_literals;
using test::error_of;
using clock = std::chrono::steady_clock;
namespace net = weft::net;

class udp : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, udp, test::everywhere(), test::name_of);

TEST_P(udp, a_datagram_arrives_whole_with_its_sender) {
  here([] {
    net::udp_socket a = net::bind_udp("127.0.0.1:0");
    net::udp_socket b = net::bind_udp("127.0.0.1:0");
    EXPECT_EQ(a.send_to("one", b.local_address()), 3u);
    EXPECT_EQ(a.send_to("second", b.local_address()), 6u);
    std::array<char, 64> buffer;
    auto [n, from] = b.recv_from(buffer);
    EXPECT_EQ(std::string(buffer.data(), n), "one");
    EXPECT_EQ(from, a.local_address());
    EXPECT_EQ(b.recv_from(buffer).first, 6u);
    EXPECT_EQ(b.send_to("reply", from), 5u);
    EXPECT_EQ(a.recv_from(buffer).first, 5u);
  });
}

TEST_P(udp, a_datagram_is_cut_to_the_buffer_and_may_be_empty) {
  here([] {
    net::udp_socket a = net::bind_udp("127.0.0.1:0");
    net::udp_socket b = net::bind_udp("127.0.0.1:0");
    a.send_to("longer than that", b.local_address());
    a.send_to("", b.local_address());
    a.send_to("next", b.local_address());
    std::array<std::byte, 6> buffer;
    EXPECT_EQ(b.recv_from(buffer).first, 6u);
    EXPECT_EQ(b.recv_from(buffer).first, 0u);
    EXPECT_EQ(b.recv_from(buffer).first, 4u);
  });
}

TEST_P(udp, a_receiver_that_waits_is_woken_by_a_datagram) {
  here([] {
    net::udp_socket a = net::bind_udp("127.0.0.1:0");
    net::udp_socket b = net::bind_udp("127.0.0.1:0");
    test::crew crew;
    std::atomic<int> received = 0;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&] {
        std::array<char, 8> buffer;
        received += static_cast<int>(b.recv_from(buffer).first);
      });
    }
    test::await_io_wait();
    for (int i = 0; i < 4; ++i) a.send_to("x", b.local_address());
    crew.wait();
    EXPECT_EQ(received, 4);
  });
}

TEST_P(udp, connected_sockets_read_and_write) {
  here([] {
    net::udp_socket a = net::bind_udp("127.0.0.1:0");
    net::udp_socket b = net::bind_udp("127.0.0.1:0");
    net::udp_socket stranger = net::bind_udp("127.0.0.1:0");
    a.connect(b.local_address());
    b.connect(a.local_address());
    EXPECT_EQ(a.remote_address(), b.local_address());
    stranger.send_to("not for you", b.local_address());
    EXPECT_EQ(a.write("for you"), 7u);
    std::array<char, 64> buffer;
    EXPECT_EQ(b.read(buffer), 7u);
    EXPECT_EQ(std::string(buffer.data(), 7), "for you");
  });
}

TEST_P(udp, a_dual_stack_socket_talks_to_ipv4) {
  here([] {
    net::udp_socket wild = net::bind_udp(":0");
    net::udp_socket b = net::bind_udp("127.0.0.1:0");
    EXPECT_EQ(wild.send_to("x", b.local_address()), 1u);
    std::array<char, 8> buffer;
    const auto [n, from] = b.recv_from(buffer);
    EXPECT_EQ(n, 1u);
    b.send_to("reply", from);
    const auto [m, who] = wild.recv_from(buffer);
    EXPECT_EQ(m, 5u);
    EXPECT_EQ(who, b.local_address());
  });
}

TEST_P(udp, deadlines_and_close_end_a_wait) {
  here([] {
    net::udp_socket s = net::bind_udp("127.0.0.1:0");
    std::array<char, 8> buffer;
    s.set_read_deadline(clock::now() + 2ms);
    EXPECT_EQ(error_of([&](std::error_code& ec) { s.recv_from(buffer, ec); }), std::errc::timed_out);
    s.set_deadline(clock::time_point::max());
    test::crew crew;
    crew.goroutine([&] {
      EXPECT_EQ(error_of([&](std::error_code& ec) { s.recv_from(buffer, ec); }), std::errc::operation_canceled);
    });
    test::await_io_wait();
    s.close();
  });
}

}  // namespace
