// Servers: one goroutine a connection.
#include <weft/weft.h>

#include <array>
#include <cstring>
#include <string_view>

#include "../common/harness.h"
#include "../common/http.h"
#include "../common/load.h"

namespace {

namespace net = weft::net;

void echo(net::conn c) {
  std::array<std::byte, 4096> buffer;
  std::error_code ec;
  while (const std::size_t n = c.read(buffer, ec)) {
    c.write(std::span(buffer).first(n), ec);
    if (ec) break;
  }
}

void hello(net::conn c) {
  std::array<char, 4096> buffer;
  std::size_t filled = 0;
  std::error_code ec;
  while (const std::size_t n = c.read(std::span(buffer).subspan(filled), ec)) {
    filled += n;
    while (const std::size_t size = bench::http_request_size({buffer.data(), filled})) {
      std::memmove(buffer.data(), buffer.data() + size, filled -= size);
      c.write(bench::http_answer, ec);
      if (ec) return;
    }
  }
}

template <void (*serve)(net::conn)>
bench::outcome run_server(bench::load_shape shape, std::uint64_t requests) {
  net::listener listener = net::listen_tcp("127.0.0.1:0");
  weft::wait_group all;
  all.go([&] {
    std::error_code ec;
    for (;;) {
      net::conn c = listener.accept(ec);
      if (ec) return;
      weft::go([c = std::move(c)]() mutable { serve(std::move(c)); });
    }
  });
  const auto before = weft::runtime::read_sched_stats();
  bench::outcome out = weft::blocking([&] { return bench::run_load(listener.local_address().port(), shape, requests); });
  const auto after = weft::runtime::read_sched_stats();
  const auto each = [&](const char* name, std::uint64_t weft::runtime::sched_stats::* what) {
    out.extra.emplace_back(name, static_cast<double>(after.*what - before.*what) / static_cast<double>(out.ops));
  };
  using stats = weft::runtime::sched_stats;
  each("polls_each", &stats::netpolls);
  each("poll_waits_each", &stats::netpoll_waits);
  each("events_each", &stats::netpoll_events);
  each("thread_wakeups_each", &stats::wakeups);
  each("thread_sleeps_each", &stats::sleeps);
  each("steals_each", &stats::steals);
  listener.close();
  all.wait();
  return out;
}

const bench::registered r1{{"echo_64", 300'000, 20'000, [](const bench::arguments& a) { return run_server<echo>({64, "echo"}, a.n); }}};
const bench::registered r2{{"echo_1000", 300'000, 20'000, [](const bench::arguments& a) { return run_server<echo>({1000, "echo"}, a.n); }}};
const bench::registered r3{{"http_hello", 300'000, 20'000, [](const bench::arguments& a) { return run_server<hello>({64, "http"}, a.n); }}};
const bench::registered r4{{"http_wrk", 3, 1, [](const bench::arguments& a) { return run_server<hello>({64, "wrk"}, a.n); }}};

}  // namespace
