// An echo server, and a client for it.
//
//   echo serve 127.0.0.1:7000       serves until it is killed
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

namespace net = weft::net;

namespace {

void echo(net::conn c) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t n = c.read(buffer)) c.write(std::span(buffer).first(n));
}

void serve(net::listener& listener) {
  for (;;) {
    weft::go([c = listener.accept()]() mutable {
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
  weft::go([&] {
    try {
      serve(listener);
    } catch (const std::system_error& e) {
      if (e.code() != std::errc::operation_canceled) throw;  // closed, below
    }
  });

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
  std::printf("%d of 100 clients got back what they had sent, on %zu threads\n", right.load(), weft::runtime::num_thread());
  return right == 100 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return weft::run([&] {
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "serve" && argc == 3) {
      net::listener listener = net::listen_tcp(argv[2]);
      std::printf("listening on %s\n", listener.local_address().to_string().c_str());
      serve(listener);
    }
    if (what == "send" && argc == 4) {
      std::printf("%s\n", ask(argv[2], argv[3]).c_str());
      return 0;
    }
    return demonstrate();
  });
}
