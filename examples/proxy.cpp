// Forwards a port: whoever connects here is connected there.
//
//   proxy 127.0.0.1:7002 example.org:80
//   proxy                                  forwards to an echo server of its own, and checks what passes through
//
// Two goroutines a connection, one for each direction. When one side has no more to say, the other is told so (half
// close) and may still answer; when both are done, or one fails, both connections close.
#include <weft/weft.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <system_error>

#include "usage.h"

namespace net = weft::net;
using namespace std::chrono_literals;

namespace {

constexpr const char* usage =
    "usage: proxy ADDRESS TARGET  forwards until it is killed; for example 127.0.0.1:7002 example.org:80\n"
    "       proxy                 forwards to an echo server of its own, and checks what passes through\n";

void pump(net::conn& from, net::conn& to) {
  std::array<std::byte, 16 * 1024> buffer;
  std::error_code ec;
  while (const std::size_t n = from.read(buffer, ec)) {
    to.write(std::span(buffer).first(n), ec);
    if (ec) break;
  }
  if (!ec) to.shutdown_write(ec);
  if (ec) {  // nothing more will pass in either direction
    from.close();
    to.close();
  }
}

void forward(net::conn client, const std::string& target) {
  std::error_code ec;
  net::conn server = net::dial_tcp(target, {.timeout = 10s}, ec);
  if (ec) {
    std::fprintf(stderr, "%s: %s\n", target.c_str(), ec.message().c_str());
    return;
  }
  weft::wait_group both;
  both.go([&] { pump(client, server); });
  both.go([&] { pump(server, client); });
  both.wait();
}

// Until the listener is closed; then until the last connection is over.
template <class Handle>
void serve(net::listener& listener, Handle handle) {
  weft::wait_group connections;
  std::error_code ec;
  for (;;) {
    net::conn c = listener.accept(ec);
    if (ec) break;
    connections.go([handle, c = std::move(c)]() mutable { handle(std::move(c)); });
  }
  connections.wait();
}

int demonstrate() {
  net::listener behind = net::listen_tcp("127.0.0.1:0");
  net::listener front = net::listen_tcp("127.0.0.1:0");
  weft::wait_group servers;
  servers.go([&] { serve(behind, [](net::conn c) { pump(c, c); }); });
  const std::string target = behind.local_address().to_string();
  servers.go([&] { serve(front, [&](net::conn c) { forward(std::move(c), target); }); });

  const std::string text(1 << 20, 'p');
  std::atomic<int> right = 0;
  weft::wait_group clients;
  for (int i = 0; i < 20; ++i) {
    clients.go([&] {
      net::conn c = net::dial_tcp(front.local_address().to_string());
      weft::wait_group writer;
      writer.go([&] {
        c.write(text);
        c.shutdown_write();
      });
      std::string back(text.size(), ' ');
      const bool all = c.read_full(back) == text.size();
      char more;
      right += all && c.read({&more, 1}) == 0 && back == text;
      writer.wait();
    });
  }
  clients.wait();
  front.close();
  behind.close();
  servers.wait();
  std::printf("%d of 20 megabytes went through the proxy and back\n", right.load());
  return right == 20 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (example::asked_for_help(argc, argv, usage)) return 0;
  return example::run("proxy", [&] {
    if (argc == 1) return demonstrate();
    if (argc != 3 || argv[1][0] == '-') return example::misunderstood(usage);
    net::listener front = net::listen_tcp(argv[1]);
    example::say_where(front);
    serve(front, [&](net::conn c) { forward(std::move(c), argv[2]); });
    return 0;
  });
}
