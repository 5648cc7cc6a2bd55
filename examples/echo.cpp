// An echo server, and a client for it.
//
//   echo serve 127.0.0.1:7000       serves until SIGTERM or Ctrl-C
//   echo send 127.0.0.1:7000 TEXT   sends a text and prints what comes back
//   echo                            does both: 100 clients, each of which checks its answers
//
// A connection is a goroutine, and the code of one reads as if it were alone in the world.
#include <weft/weft.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "end_signals.h"
#include "usage.h"

namespace net = weft::net;

namespace {

constexpr const char* usage =
    "usage: echo serve ADDRESS      serves until SIGTERM or Ctrl-C; for example 127.0.0.1:7000\n"
    "       echo send ADDRESS TEXT  sends a text and prints what comes back\n"
    "       echo                    does both: 100 clients, each of which checks its answers\n";

void echo(net::conn c) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t n = c.read(buffer)) c.write(std::span(buffer).first(n));
}

// Until the listener is closed.
void serve(net::listener& listener) {
  std::error_code ec;
  for (;;) {
    net::conn c = listener.accept(ec);
    if (ec) return;
    weft::go([c = std::move(c)]() mutable {
      try {
        echo(std::move(c));
      } catch (const std::system_error& e) {
        std::fprintf(stderr, "%s\n", e.what());  // a client that went away; the others go on
      }
    });
  }
}

std::string ask(std::string_view where, std::string_view text) {
  net::conn c = net::dial_tcp(where);
  c.write(text);
  c.shutdown_write();
  std::string answer;
  std::array<char, 4096> buffer;
  while (const std::size_t n = c.read(buffer)) answer.append(buffer.data(), n);
  return answer;
}

int demonstrate() {
  net::listener listener = net::listen_tcp("127.0.0.1:0");
  const std::string where = listener.local_address().to_string();
  weft::wait_group server;
  server.go([&] { serve(listener); });

  std::atomic<int> right = 0;
  weft::wait_group clients;
  for (int i = 0; i < 100; ++i) {
    clients.go([&, i] {
      const std::string text = "client " + std::to_string(i) + std::string(static_cast<std::size_t>(i) * 1000, '.');
      right += ask(where, text) == text;
    });
  }
  clients.wait();
  listener.close();
  server.wait();
  std::printf("%d of 100 clients got back what they had sent, on %zu threads\n", right.load(), weft::runtime::num_thread());
  return right == 100 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (example::asked_for_help(argc, argv, usage)) return 0;
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "serve" && argc == 3) {
    const example::end_signals end;  // before run() starts threads
    return example::run("echo", [&] { example::serve_until(end, argv[2], serve); });
  }
  return example::run("echo", [&] {
    if (argc == 1) return demonstrate();
    if (what != "send" || argc != 4) return example::misunderstood(usage);
    std::printf("%s\n", ask(argv[2], argv[3]).c_str());
    return 0;
  });
}
