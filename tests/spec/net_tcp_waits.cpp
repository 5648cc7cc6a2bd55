// TCP: what closing and deadlines do to who is waiting. From goroutines on 1, 2 and 8 Ps and from plain threads.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/net.h"

namespace {

using namespace std::chrono_literals;
using test::connected_pair;
using test::error_of;
using test::pair_of_conns;
using clock = std::chrono::steady_clock;
namespace net = weft::net;

class tcp_waits : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, tcp_waits, test::everywhere(), test::name_of);

TEST_P(tcp_waits, close_wakes_a_blocked_reader_a_blocked_writer_and_those_behind_them) {
  here([] {
    connected_pair pair = pair_of_conns();
    test::crew crew;
    std::atomic<int> canceled = 0;
    std::atomic<int> started = 0;
    for (int i = 0; i < 3; ++i) {
      crew.either(i, [&] {
        std::array<char, 4> buffer;
        ++started;
        canceled += error_of([&](std::error_code& ec) { pair.a.read(buffer, ec); }) == std::errc::operation_canceled;
      });
      crew.either(i, [&] {
        const std::string much(std::size_t{32} << 20, 'x');
        ++started;
        canceled += error_of([&](std::error_code& ec) { pair.a.write(much, ec); }) == std::errc::operation_canceled;
      });
    }
    test::await([&] { return started == 6; });
    pair.a.close();
    pair.a.close();
    crew.wait();
    EXPECT_EQ(canceled, 6);
    EXPECT_FALSE(pair.a.is_open());
    EXPECT_EQ(pair.a.native_handle(), -1);
    EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.write("x", ec); }), std::errc::operation_canceled);
  });
}

TEST_P(tcp_waits, a_connection_may_be_destroyed_while_another_goroutine_is_blocked_on_it) {
  here([] {
    for (int i = 0; i < 20; ++i) {
      connected_pair pair = pair_of_conns();
      auto doomed = std::make_unique<net::conn>(std::move(pair.a));
      net::conn* const seen = doomed.get();
      test::crew crew;
      std::atomic<bool> started = false;
      crew.either(i, [&] {
        std::array<char, 4> buffer;
        std::error_code ec;
        started = true;
        seen->read(buffer, ec);
        EXPECT_EQ(ec, std::errc::operation_canceled);
      });
      test::await([&] { return started.load(); });
      test::await_io_wait();
      doomed.reset();
    }
  });
}

TEST_P(tcp_waits, close_wakes_every_accept) {
  here([] {
    net::listener listener = net::listen_tcp("127.0.0.1:0");
    test::crew crew;
    std::atomic<int> canceled = 0;
    for (int i = 0; i < 4; ++i) {
      crew.either(i, [&] {
        try {
          listener.accept();
        } catch (const std::system_error& e) {
          canceled += e.code() == std::errc::operation_canceled;
        }
      });
    }
    test::await_io_wait();
    listener.close();
    listener.close();
    crew.wait();
    EXPECT_EQ(canceled, 4);
  });
}

TEST_P(tcp_waits, a_deadline_in_the_past_fails_at_once_even_if_there_is_data) {
  here([] {
    connected_pair pair = pair_of_conns();
    pair.b.write("data");
    pair.a.set_deadline(clock::now() - 1s);
    std::array<char, 4> buffer;
    EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.read(buffer, ec); }), std::errc::timed_out);
    EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.write("x", ec); }), std::errc::timed_out);
    pair.a.set_deadline(clock::time_point::max());
    EXPECT_EQ(pair.a.read_full(buffer), 4u);
    EXPECT_EQ(pair.a.write("x"), 1u);
  });
}

TEST_P(tcp_waits, a_deadline_ends_a_read_that_waits_and_the_connection_can_be_used_again) {
  here([] {
    connected_pair pair = pair_of_conns();
    std::array<char, 4> buffer;
    for (int i = 0; i < 3; ++i) {
      const auto before = clock::now();
      pair.a.set_read_deadline(before + 3ms);
      EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.read(buffer, ec); }), std::errc::timed_out);
      EXPECT_GE(clock::now() - before, 3ms);
      EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.read(buffer, ec); }), std::errc::timed_out);
      EXPECT_EQ(pair.a.write("w"), 1u);  // the other direction has none
      pair.a.set_read_deadline(clock::time_point::max());
      pair.b.write("1234");
      EXPECT_EQ(pair.a.read_full(buffer), 4u);
    }
  });
}

TEST_P(tcp_waits, a_deadline_ends_a_write_that_waits) {
  here([] {
    connected_pair pair = pair_of_conns();
    const std::string much(std::size_t{32} << 20, 'x');
    pair.a.set_write_deadline(clock::now() + 5ms);
    std::error_code ec;
    const std::size_t written = pair.a.write(much, ec);
    EXPECT_EQ(ec, std::errc::timed_out);
    EXPECT_LT(written, much.size());
    pair.a.set_write_deadline(clock::time_point::max());
    pair.a.close();
    EXPECT_EQ(test::read_all(pair.b).size(), written);
  });
}

TEST_P(tcp_waits, a_deadline_that_is_moved_holds_for_a_read_under_way) {
  here([] {
    connected_pair pair = pair_of_conns();
    test::crew crew;
    std::atomic<bool> ended = false;
    crew.goroutine([&] {
      std::array<char, 4> buffer;
      EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.read(buffer, ec); }), std::errc::timed_out);
      ended = true;
    });
    test::await_io_wait();
    pair.a.set_read_deadline(clock::now() + 1h);
    pair.a.set_read_deadline(clock::time_point::max());
    pair.a.set_read_deadline(clock::now() + 1h);
    EXPECT_FALSE(ended);
    pair.a.set_read_deadline(clock::now() - 1ms);
    crew.wait();
    EXPECT_TRUE(ended);
  });
}

TEST_P(tcp_waits, a_deadline_of_the_system_clock_is_fine) {
  here([] {
    connected_pair pair = pair_of_conns();
    std::array<char, 4> buffer;
    pair.a.set_deadline(std::chrono::system_clock::now() + 2ms);
    EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.read(buffer, ec); }), std::errc::timed_out);
    pair.a.set_deadline(std::chrono::system_clock::time_point::max());
    pair.b.write("1234");
    EXPECT_EQ(pair.a.read_full(buffer), 4u);
  });
}

TEST_P(tcp_waits, accept_has_a_deadline_too) {
  here([] {
    net::listener listener = net::listen_tcp("127.0.0.1:0");
    listener.set_deadline(clock::now() + 2ms);
    EXPECT_EQ(error_of([&](std::error_code& ec) { listener.accept(ec); }), std::errc::timed_out);
    listener.set_deadline(clock::time_point::max());
    test::crew crew;
    crew.goroutine([&] { net::dial_tcp(listener.local_address().to_string()); });
    EXPECT_TRUE(listener.accept());
  });
}

// What is under way when the object goes ends as after close().
TEST_P(tcp_waits, a_listener_may_go_while_somebody_accepts) {
  here([] {
    for (int round = 0; round < 200; ++round) {
      std::optional<net::listener> listener = net::listen_tcp("127.0.0.1:0");
      const std::string where = listener->local_address().to_string();
      std::atomic<bool> about_to = false;
      test::crew crew;
      crew.either(round, [&] {
        std::error_code ec;
        about_to = true;
        const net::conn c = listener->accept(ec);
        EXPECT_TRUE(c || ec == std::errc::operation_canceled) << ec.message();
      });
      test::await([&] { return about_to.load(); });
      test::await_io_wait();
      std::error_code refused;
      const net::conn client = net::dial_tcp(where, refused);
      for (int i = 0; i < round; ++i) test::relax();
      listener.reset();
    }
  });
}

TEST_P(tcp_waits, a_connection_may_go_while_somebody_fills_a_buffer) {
  here([] {
    for (int round = 0; round < 100; ++round) {
      net::listener listener = net::listen_tcp("127.0.0.1:0");
      net::conn client = net::dial_tcp(listener.local_address().to_string());
      auto server = std::make_unique<net::conn>(listener.accept());
      std::atomic<bool> about_to = false;
      test::crew crew;
      crew.either(round, [&, fills = server.get()] {
        std::array<char, 64> buffer;
        std::error_code ec;
        about_to = true;
        EXPECT_LT(fills->read_full(buffer, ec), buffer.size());
        EXPECT_EQ(ec, std::errc::operation_canceled) << ec.message();
      });
      test::await([&] { return about_to.load(); });
      test::await_io_wait();
      client.write("a few");
      for (int i = 0; i < round; ++i) test::relax();
      server.reset();
    }
  });
}

TEST_P(tcp_waits, a_write_deadline_holds_though_the_reader_keeps_up) {
  here([] {
    connected_pair pair = pair_of_conns();
    test::crew crew;
    crew.goroutine([&] {
      std::vector<char> sink(1 << 20);
      std::error_code ec;
      while (pair.b.read(sink, ec) > 0) {
      }
    });
    const std::vector<char> block(64 << 20);
    std::error_code ec;
    pair.a.set_write_deadline(clock::now() + 20ms);
    const auto limit = clock::now() + 60s;
    while (!ec && clock::now() < limit) pair.a.write(block, ec);
    EXPECT_EQ(ec, std::errc::timed_out);
    pair.a.close();
  });
}

}  // namespace
