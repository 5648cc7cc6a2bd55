// Addresses of the Internet, and the names that stand for them.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <vector>

#include "support/anywhere.h"
#include "support/net.h"

namespace {

using namespace std::chrono_literals;
using test::error_of;
namespace net = weft::net;

class tcp_names : public test::anywhere {};
INSTANTIATE_TEST_SUITE_P(, tcp_names, test::everywhere(), test::name_of);

TEST_P(tcp_names, names_are_looked_up) {
  here([] {
    net::listener listener = net::listen_tcp("localhost:0");
    const std::string where = "localhost:" + std::to_string(listener.local_address().port());
    EXPECT_TRUE(net::dial_tcp(where));
    EXPECT_TRUE(net::dial_tcp(where, {.timeout = 60s}));
    EXPECT_TRUE(net::dial_tcp(where, {.fallback_delay = 0ns}));
    EXPECT_THROW(net::dial_tcp("no-such-host.invalid:1"), std::system_error);
  });
}

TEST_P(tcp_names, names_of_services_are_taken_where_ports_are) {
  here([] {
    std::error_code none;
    const std::vector<net::address> all = net::resolve(":http", none);
    if (none) return;  // this machine has no list of services
    EXPECT_EQ(all.front().port(), 80);
    // What listens on a named port without a host listens everywhere, as with a number. (Somebody else may have the port.)
    const net::listener l = net::listen_tcp(":http-alt", none);
    if (l) {
      EXPECT_EQ(l.local_address().host(), "::");
    }
    const net::udp_socket u = net::bind_udp("127.0.0.1:tftp", none);  // only UDP has that service
    EXPECT_TRUE(u || none == std::errc::address_in_use || none == std::errc::permission_denied) << none.message();
  });
}

TEST_P(tcp_names, old_spellings_of_numbers_are_no_addresses) {
  here([] {
    for (const char* text : {"127.1:80", "2130706433:80", "0x7f.1:80", "0177.0.0.1:80", "1.2.3:80", "1.2.3.4.:80"}) {
      EXPECT_THROW(net::dial_tcp(text, {.timeout = 1s}), std::system_error) << text;
      EXPECT_THROW(net::listen_tcp(text), std::system_error) << text;
    }
  });
}

TEST(tcp_address, is_a_key_and_can_be_printed) {
  std::unordered_set<net::address> seen;
  for (const char* text : {"127.0.0.1:80", "127.0.0.1:81", "[::1]:80", "[::ffff:127.0.0.1]:80"}) seen.insert(net::address::parse(text));
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen.contains(net::address::parse("127.0.0.1:81")));
  std::ostringstream out;
  out << net::address::parse("[::1]:80");
  EXPECT_EQ(out.str(), "[::1]:80");
}

TEST(tcp_address, is_made_of_a_sockaddr_storage_of_any_family) {
  sockaddr_storage storage{};
  const net::address a = net::address::parse("10.0.0.1:7");
  std::memcpy(&storage, a.native(), a.native_size());
  EXPECT_EQ(net::address::from_native(&storage, sizeof storage), a);
}

TEST(tcp_address, what_is_no_address_is_an_invalid_argument) {
  for (const char* text : {"", "127.0.0.1", "::1:80", "[::1]", "[::1]80", "host:1:2", "127.0.0.1:65536", "localhost:99999",
                           ":99999", "[]:80", "127.0.0.1:-1", "127.0.0.1: 80", "127.0.0.1:+80"}) {
    EXPECT_EQ(error_of([&](std::error_code& ec) { net::listen_tcp(text, ec); }), std::errc::invalid_argument) << text;
    EXPECT_EQ(error_of([&](std::error_code& ec) { net::dial_tcp(text, ec); }), std::errc::invalid_argument) << text;
  }
}

TEST(tcp_address, addresses_are_compared_and_written_as_people_write_them) {
  EXPECT_EQ(net::address::parse("127.0.0.1:80").to_string(), "127.0.0.1:80");
  EXPECT_EQ(net::address::parse("[::1]:80").to_string(), "[::1]:80");
  EXPECT_EQ(net::address::parse("[::ffff:10.0.0.1]:80").to_string(), "10.0.0.1:80");
  EXPECT_EQ(net::address::parse("[::1]:80").host(), "::1");
  EXPECT_EQ(net::address::parse("[::1]:80").port(), 80);
  EXPECT_EQ(net::address::parse("1.2.3.4:5"), net::address::parse("1.2.3.4:5"));
  EXPECT_LT(net::address::parse("1.2.3.4:5"), net::address::parse("1.2.3.4:6"));
  EXPECT_LT(net::address::parse("1.2.3.4:5"), net::address::parse("2.0.0.0:1"));
  EXPECT_EQ(net::address().to_string(), "");
  EXPECT_THROW(net::address::parse("localhost:1"), std::system_error);
  EXPECT_THROW(net::address::parse(std::string_view("127.0.0.1\0.example:80", 21)), std::system_error);
}

}  // namespace
