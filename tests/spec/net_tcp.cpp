// TCP: listeners and connections. From goroutines on 1, 2 and 8 Ps and from plain threads. What closing and deadlines do to
// who is waiting: net_tcp_waits.cpp.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/anywhere.h"
#include "support/build.h"
#include "support/cpu_time.h"
#include "support/net.h"

namespace {

using namespace std::chrono_literals;
using test::connected_pair;
using test::error_of;
using test::pair_of_conns;
using clock = std::chrono::steady_clock;
namespace net = weft::net;

class tcp : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, tcp, test::everywhere(), test::name_of);

TEST_P(tcp, what_one_side_writes_the_other_reads) {
  here([] {
    connected_pair pair = pair_of_conns();
    EXPECT_EQ(pair.a.write("hello"), 5u);
    std::array<char, 16> buffer;
    EXPECT_EQ(pair.b.read_full(std::span(buffer).first(5)), 5u);
    EXPECT_EQ(std::string(buffer.data(), 5), "hello");
    EXPECT_EQ(pair.b.write("!"), 1u);
    EXPECT_EQ(pair.a.read(buffer), 1u);
    EXPECT_EQ(buffer[0], '!');
  });
}

TEST_P(tcp, every_kind_of_buffer_of_bytes_is_taken) {
  here([] {
    connected_pair pair = pair_of_conns();
    std::array<std::byte, 4> bytes{};
    std::vector<unsigned char> unsigned_chars(3, 'u');
    std::string text = "text";
    const std::string_view view = "view";
    char array[2] = {'a', 'b'};
    const char magic[4] = {'R', 'I', 'F', 'F'};
    const char with_zeros[8] = {'p', 0, 'a', 0, 0, 0, 'd', 0};
    std::size_t sent = 0;
    sent += pair.a.write(bytes);
    sent += pair.a.write(std::span<const std::byte>(bytes));
    sent += pair.a.write(std::as_bytes(std::span(text)));
    sent += pair.a.write(unsigned_chars);
    sent += pair.a.write(text);
    sent += pair.a.write(view);
    sent += pair.a.write("literal");
    sent += pair.a.write(text.c_str());
    sent += pair.a.write(array);
    sent += pair.a.write(magic);
    sent += pair.a.write(with_zeros);
    sent += pair.a.write(u8"utf");
    sent += pair.a.write({text.data(), 2});
    std::error_code ec;
    sent += pair.a.write(std::string("temporary"), ec);
    EXPECT_FALSE(ec);
    EXPECT_EQ(sent, 4u + 4 + 4 + 3 + 4 + 4 + 7 + 4 + 2 + 4 + 7 + 3 + 2 + 9);

    std::size_t received = 0;
    received += pair.b.read_full(bytes);
    received += pair.b.read_full(std::span<std::byte>(bytes));
    received += pair.b.read_full(unsigned_chars);
    received += pair.b.read_full(text, ec);
    received += pair.b.read_full(array);
    received += pair.b.read_full(std::as_writable_bytes(std::span(array)));
    std::string rest(sent - received, ' ');
    received += pair.b.read_full(rest);
    EXPECT_EQ(received, sent);
    EXPECT_TRUE(rest.ends_with("viewliteraltextabRIFF" + std::string(with_zeros, 7) + "utftetemporary")) << rest;
  });
}

TEST_P(tcp, the_end_of_the_stream_reads_as_zero_and_stays) {
  here([] {
    connected_pair pair = pair_of_conns();
    pair.a.write("x");
    pair.a.close();
    std::array<char, 8> buffer;
    EXPECT_EQ(pair.b.read(buffer), 1u);
    EXPECT_EQ(pair.b.read(buffer), 0u);
    EXPECT_EQ(pair.b.read(buffer), 0u);
    EXPECT_EQ(pair.b.read_full(buffer), 0u);
  });
}

TEST_P(tcp, read_full_stops_at_the_end_of_the_stream) {
  here([] {
    connected_pair pair = pair_of_conns();
    pair.a.write("abc");
    pair.a.shutdown_write();
    std::array<char, 8> buffer;
    std::error_code ec;
    EXPECT_EQ(pair.b.read_full(buffer, ec), 3u);
    EXPECT_FALSE(ec);
  });
}

TEST_P(tcp, after_a_half_close_the_other_direction_goes_on) {
  here([] {
    connected_pair pair = pair_of_conns();
    pair.a.write("question");
    pair.a.shutdown_write();
    EXPECT_EQ(test::read_all(pair.b), "question");
    pair.b.write("answer");
    pair.b.close();
    EXPECT_EQ(test::read_all(pair.a), "answer");
    EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.write("more", ec); }), std::errc::broken_pipe);
  });
}

TEST_P(tcp, an_empty_read_or_write_returns_at_once) {
  here([] {
    connected_pair pair = pair_of_conns();
    EXPECT_EQ(pair.a.read(std::span<std::byte>()), 0u);
    EXPECT_EQ(pair.a.write(""), 0u);
  });
}

TEST_P(tcp, a_large_write_waits_for_a_slow_reader_and_loses_nothing) {
  here([] {
    connected_pair pair = pair_of_conns();
    std::string sent(test::scaled(24 << 20, 8 << 20, 4 << 20), '\0');
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 31 >> 3);
    test::crew crew;
    crew.goroutine([&] {
      EXPECT_EQ(pair.a.write(sent), sent.size());
      pair.a.shutdown_write();
    });
    EXPECT_EQ(test::read_all(pair.b), sent);
  });
}

TEST_P(tcp, parts_are_written_in_order_as_one) {
  here([] {
    connected_pair pair = pair_of_conns();
    const std::string large(test::scaled(8 << 20, 2 << 20, 1 << 20), 'L');
    test::crew crew;
    crew.goroutine([&] {
      EXPECT_EQ(pair.a.writev({"head", "", large, std::string_view("tail")}), large.size() + 8);
      std::vector<weft::const_buffer> many(3000, "ab");
      EXPECT_EQ(pair.a.writev(many), 6000u);
      pair.a.close();
    });
    std::string expected = "head" + large + "tail";
    for (int i = 0; i < 3000; ++i) expected += "ab";
    EXPECT_EQ(test::read_all(pair.b), expected);
  });
}

TEST_P(tcp, writes_at_the_same_time_do_not_interleave) {
  here([] {
    connected_pair pair = pair_of_conns();
    constexpr int writers = 6;
    constexpr int writes = 4;
    const std::size_t size = test::scaled(700'000, 200'000, 100'000);
    {
      test::crew crew;
      std::atomic<int> left = writers;
      for (int i = 0; i < writers; ++i) {
        crew.either(i, [&, i] {
          const std::string block(size, static_cast<char>('a' + i));
          for (int n = 0; n < writes; ++n) pair.a.write(block);
          if (--left == 0) pair.a.shutdown_write();
        });
      }
      const std::string all = test::read_all(pair.b);
      ASSERT_EQ(all.size(), size * writers * writes);
      for (std::size_t at = 0; at < all.size(); at += size) {
        ASSERT_EQ(all.find_first_not_of(all[at], at), at + size == all.size() ? std::string::npos : all.find_first_not_of(all[at], at));
        ASSERT_EQ(all.compare(at, size, std::string(size, all[at])), 0) << "block at " << at;
      }
    }
  });
}

TEST_P(tcp, addresses_are_those_of_the_other_side) {
  here([] {
    connected_pair pair = pair_of_conns();
    EXPECT_EQ(pair.a.local_address(), pair.b.remote_address());
    EXPECT_EQ(pair.b.local_address(), pair.a.remote_address());
    EXPECT_NE(pair.a.local_address(), pair.a.remote_address());
    EXPECT_EQ(pair.a.local_address().host(), "127.0.0.1");
    EXPECT_EQ(pair.a.local_address().to_string(), "127.0.0.1:" + std::to_string(pair.a.local_address().port()));
  });
}

// A port that nobody listens on, and nobody else gets, as long as this lives.
class silent_port {
 public:
  silent_port() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  silent_port(const silent_port&) = delete;
  ~silent_port() { ::close(fd_); }
  const std::string& address() const { return address_; }

 private:
  int fd_;
  std::string address_;
};

TEST_P(tcp, nobody_listening_is_connection_refused) {
  here([] {
    const silent_port port;
    EXPECT_EQ(error_of([&](std::error_code& ec) { net::dial_tcp(port.address(), ec); }), std::errc::connection_refused);
    EXPECT_THROW(net::dial_tcp(port.address()), std::system_error);
  });
}

TEST_P(tcp, a_port_in_use_cannot_be_listened_on_unless_it_is_shared) {
  here([] {
    net::listener first = net::listen_tcp("127.0.0.1:0");
    const std::string where = first.local_address().to_string();
    EXPECT_EQ(error_of([&](std::error_code& ec) { net::listen_tcp(where, ec); }), std::errc::address_in_use);
    net::listener shared = net::listen_tcp("127.0.0.1:0", {.reuse_port = true});
    EXPECT_NO_THROW(net::listen_tcp(shared.local_address().to_string(), {.reuse_port = true}));
  });
}

TEST_P(tcp, a_listener_without_a_host_takes_both_families) {
  here([] {
    net::listener listener = net::listen_tcp(":0");
    const std::string port = std::to_string(listener.local_address().port());
    for (const char* host : {"127.0.0.1:", "[::1]:"}) {
      std::error_code ec;
      net::conn out = net::dial_tcp(host + port, ec);
      if (ec == std::errc::address_family_not_supported || ec == std::errc::address_not_available) continue;  // no IPv6 here
      ASSERT_FALSE(ec) << host << ": " << ec.message();
      net::conn in = listener.accept();
      EXPECT_EQ(in.remote_address(), out.local_address()) << host;
    }
    EXPECT_TRUE(net::dial_tcp(listener.local_address().to_string())) << "its own address can be dialed";
    EXPECT_TRUE(net::dial_tcp(":" + port));
  });
}

// A server that writes down who has come must not fail because that one is gone.
TEST_P(tcp, the_other_side_is_known_also_after_it_has_gone) {
  here([] {
    net::listener listener = net::listen_tcp("127.0.0.1:0");
    net::conn client = net::dial_tcp(listener.local_address().to_string());
    const net::address from = client.local_address();
    const linger at_once{1, 0};
    ::setsockopt(client.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client.close();
    EXPECT_EQ(client.remote_address(), listener.local_address());
    net::conn server = listener.accept();
    EXPECT_EQ(server.remote_address(), from);
    std::array<char, 8> buffer;
    std::error_code ec;
    server.read(buffer, ec);
    EXPECT_EQ(ec, std::errc::connection_reset);
    EXPECT_EQ(server.remote_address(ec), from);
    EXPECT_FALSE(ec);
    server.close();
    EXPECT_EQ(server.remote_address(), from);
    server.local_address(ec);
    EXPECT_EQ(ec, std::errc::operation_canceled);
  });
}

struct text_of_its_own {
  operator std::string_view() const { return "text"; }
};
struct bytes_of_its_own {
  std::array<std::byte, 4>& bytes;
  operator std::span<std::byte>() const { return bytes; }
};

TEST_P(tcp, what_says_that_it_is_text_or_bytes_is_taken) {
  here([] {
    connected_pair pair = pair_of_conns();
    EXPECT_EQ(pair.a.write(text_of_its_own{}), 4u);
    std::array<std::byte, 4> bytes;
    EXPECT_EQ(pair.b.read_full(bytes_of_its_own{bytes}), 4u);
  });
}

int option(const net::conn& c, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(c.native_handle(), level, name, &value, &size);
  return value;
}

TEST_P(tcp, no_delay_and_keep_alive_are_on_by_default_on_both_sides) {
  here([] {
    connected_pair pair = pair_of_conns();
    for (net::conn* c : {&pair.a, &pair.b}) {
      EXPECT_NE(option(*c, IPPROTO_TCP, TCP_NODELAY), 0);
      EXPECT_NE(option(*c, SOL_SOCKET, SO_KEEPALIVE), 0);
      EXPECT_EQ(option(*c, IPPROTO_TCP, TCP_KEEPIDLE), 15);
      c->set_no_delay(false);
      EXPECT_EQ(option(*c, IPPROTO_TCP, TCP_NODELAY), 0);
      c->set_keep_alive(0s);
      EXPECT_EQ(option(*c, SOL_SOCKET, SO_KEEPALIVE), 0);
    }
    net::listener listener = net::listen_tcp("127.0.0.1:0", {.no_delay = false, .keep_alive = 0s});
    net::conn out = net::dial_tcp(listener.local_address().to_string(), {.no_delay = false, .keep_alive = 0s});
    net::conn in = listener.accept();
    for (net::conn* c : {&in, &out}) {
      EXPECT_EQ(option(*c, IPPROTO_TCP, TCP_NODELAY), 0);
      EXPECT_EQ(option(*c, SOL_SOCKET, SO_KEEPALIVE), 0);
    }
  });
}

TEST_P(tcp, a_connection_goes_on_after_its_descriptor_was_shown) {
  here([] {
    connected_pair pair = pair_of_conns();
    const int copy = ::dup(pair.b.native_handle());
    std::array<char, 64> buffer;
    for (int i = 0; i < 3; ++i) {
      pair.a.write("ping");
      EXPECT_EQ(pair.b.read_full(std::span(buffer).first(4)), 4u);
    }
    pair.b.close();
    ::close(copy);
    EXPECT_EQ(pair.a.read(buffer), 0u);
  });
}

// A dial that nobody answers: the listener's queue is full.
TEST_P(tcp, a_dial_that_is_not_answered_ends_with_its_timeout) {
  here([] {
    net::listener listener = net::listen_tcp("127.0.0.1:0", {.backlog = 0});
    const std::string where = listener.local_address().to_string();
    std::vector<net::conn> waiting;
    std::error_code ec;
    for (int i = 0; i < 64 && !ec; ++i) waiting.push_back(net::dial_tcp(where, {.timeout = 30ms}, ec));
    EXPECT_EQ(ec, std::errc::timed_out);
  });
}

TEST_P(tcp, a_connection_reset_by_the_peer_is_an_error_and_not_the_end_of_the_stream) {
  here([] {
    connected_pair pair = pair_of_conns();
    const linger abort_on_close{1, 0};
    ::setsockopt(pair.b.native_handle(), SOL_SOCKET, SO_LINGER, &abort_on_close, sizeof abort_on_close);
    test::crew crew;
    crew.goroutine([&] {
      std::array<char, 4> buffer;
      EXPECT_EQ(error_of([&](std::error_code& ec) { pair.a.read(buffer, ec); }), std::errc::connection_reset);
    });
    test::await_io_wait();
    pair.b.close();
  });
}

// Data and the end of the stream may come in one event. A reader with a larger buffer than the data must not wait for
// another.
TEST_P(tcp, the_end_of_the_stream_is_seen_however_it_arrives) {
  here([] {
    net::listener listener = net::listen_tcp("127.0.0.1:0");
    const std::string where = listener.local_address().to_string();
    for (int i = 0; i < 200; ++i) {
      net::conn out = net::dial_tcp(where);
      net::conn in = listener.accept();
      test::crew crew;
      std::string received;
      crew.goroutine([&] { received = test::read_all(in); });
      if (i % 2 != 0) weft::yield();
      out.write("data");
      if (i % 3 == 0) weft::yield();
      out.close();
      crew.wait();
      ASSERT_EQ(received, "data") << i;
    }
  });
}

TEST_P(tcp, urgent_data_does_not_stop_a_reader) {
  here([] {
    connected_pair pair = pair_of_conns();
    std::string received;
    test::crew crew;
    crew.goroutine([&] { received = test::read_all(pair.b); });
    test::await_io_wait();
    for (int i = 0; i < 20; ++i) {
      pair.a.write("before");
      ::send(pair.a.native_handle(), "!", 1, MSG_OOB);
      pair.a.write("after");
    }
    pair.a.close();
    crew.wait();
    EXPECT_GE(received.size(), 20u * 11);  // an urgent byte that another one overtakes becomes an ordinary one
  });
}

TEST_P(tcp, one_byte_at_a_time_arrives_as_well) {
  here([] {
    connected_pair pair = pair_of_conns();
    constexpr int n = 2000;
    test::crew crew;
    crew.goroutine([&] {
      for (int i = 0; i < n; ++i) pair.a.write({"x", 1});
      pair.a.close();
    });
    EXPECT_EQ(test::read_all(pair.b).size(), std::size_t{n});
  });
}

TEST_P(tcp, a_round_trip_after_the_other_works) {
  here([] {
    connected_pair pair = pair_of_conns();
    const int rounds = static_cast<int>(test::scaled(2000, 500, 300));
    test::crew crew;
    crew.goroutine([&] {
      std::array<char, 256> buffer;
      while (const std::size_t n = pair.b.read(buffer)) pair.b.write({buffer.data(), n});
    });
    std::array<char, 256> buffer;
    for (int i = 0; i < rounds; ++i) {
      const std::string text = std::to_string(i);
      pair.a.write(text);
      ASSERT_EQ(pair.a.read_full(std::span(buffer).first(text.size())), text.size());
      ASSERT_EQ(std::string_view(buffer.data(), text.size()), text);
    }
    pair.a.close();
  });
}

TEST(tcp_idle, a_waiting_reader_holds_no_thread_and_costs_no_cpu) {
  weft::run(
      [] {
        net::listener listener = net::listen_tcp("127.0.0.1:0");
        std::vector<net::conn> ins;
        std::vector<net::conn> outs;
        weft::wait_group readers;
        for (int i = 0; i < 100; ++i) {
          outs.push_back(net::dial_tcp(listener.local_address().to_string()));
          ins.push_back(listener.accept());
        }
        const std::size_t threads = weft::runtime::num_thread();
        for (net::conn& c : ins) {
          readers.go([&c] {
            char byte;
            EXPECT_EQ(c.read({&byte, 1}), 0u);
          });
        }
        test::await_io_waits(100);
        EXPECT_LE(test::threads_without_preempted(), threads + 8);  // that of the other P, the spare, and some to spare
        // On a busy machine it takes some time until the last one that looks for work has gone to sleep.
        bool rests = false;
        for (int i = 0; i < 20 && !rests; ++i) {
          const auto polls = weft::runtime::read_sched_stats().netpolls;
          const auto before = test::cpu_time();
          weft::sleep_for(200ms);
          rests = (test::under_sanitizer || test::cpu_time() - before < 20ms) && weft::runtime::read_sched_stats().netpolls - polls < 20;
        }
        EXPECT_TRUE(rests);
        outs.clear();
        readers.wait();
      },
      {.procs = 2});
}

TEST(tcp_errors, a_default_constructed_connection_is_a_bad_file_descriptor) {
  net::conn c;
  char byte;
  EXPECT_FALSE(c);
  EXPECT_EQ(error_of([&](std::error_code& ec) { c.read({&byte, 1}, ec); }), std::errc::bad_file_descriptor);
  EXPECT_EQ(c.native_handle(), -1);
  c.close();
  c.set_deadline(clock::now());
}

TEST(tcp_errors, accept_waits_while_the_process_is_out_of_descriptors) {
  weft::run([] {
    net::listener listener = net::listen_tcp("127.0.0.1:0");
    net::conn out = net::dial_tcp(listener.local_address().to_string());
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit tight{3, before.rlim_max};  // 0, 1 and 2 are in use; the runtime's threads open and close others as they run
    ::setrlimit(RLIMIT_NOFILE, &tight);
    std::atomic<bool> accepted = false;
    weft::wait_group all;
    all.go([&] {
      net::conn in = listener.accept();
      accepted = true;
    });
    test::await_io_wait();
    EXPECT_FALSE(accepted);
    ::setrlimit(RLIMIT_NOFILE, &before);
    all.wait();
    EXPECT_TRUE(accepted);
  });
}

}  // namespace
