// Values between threads.
#include <array>
#include <atomic>
#include <deque>

#include "threads.h"

namespace bench {
namespace {

using numbers = channel<std::uint64_t>;

outcome pingpong(const arguments& a) {
  numbers ping;
  numbers pong;
  const stopwatch w;
  std::thread other([&] {
    while (const auto v = ping.recv()) pong.send(*v + 1);
  });
  std::uint64_t v = 0;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    ping.send(v);
    v = *pong.recv();
  }
  const outcome out = w.stop(a.n, v == a.n);
  ping.close();
  other.join();
  return out;
}
const registered pingpong_workload{{"pingpong", 20'000, 2'000, pingpong}};

outcome buffered(const arguments& a) {
  numbers ch(128);
  const stopwatch w;
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < a.n; ++i) ch.send(i);
    ch.close();
  });
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  for (; const auto v = ch.recv(); ++count) sum += *v;
  const outcome out = w.stop(a.n, count == a.n && sum == sum_below(a.n));
  producer.join();
  return out;
}
const registered buffered_workload{{"buffered", 1'000'000, 100'000, buffered}};

outcome mpmc(const arguments& a) {
  constexpr std::uint64_t sides = 4;
  const std::uint64_t each = a.n / sides;
  numbers ch(64);
  std::vector<std::thread> producers;
  std::vector<std::thread> consumers;
  std::atomic<std::uint64_t> sum{0};
  std::atomic<std::uint64_t> count{0};
  const stopwatch w;
  for (std::uint64_t p = 0; p < sides; ++p) {
    producers.emplace_back([&, p] {
      for (std::uint64_t i = 0; i < each; ++i) ch.send(p * each + i);
    });
    consumers.emplace_back([&] {
      std::uint64_t my_sum = 0;
      std::uint64_t my_count = 0;
      for (; const auto v = ch.recv(); ++my_count) my_sum += *v;
      sum += my_sum;
      count += my_count;
    });
  }
  for (std::thread& t : producers) t.join();
  ch.close();
  for (std::thread& t : consumers) t.join();
  const std::uint64_t total = each * sides;
  return w.stop(total, count == total && sum == sum_below(total));
}
const registered mpmc_workload{{"mpmc", 400'000, 40'000, mpmc}};

outcome ring(const arguments& a) {
  std::deque<numbers> links(ring_members);
  numbers last;
  std::vector<std::thread> members;
  const stopwatch w;
  for (std::uint64_t i = 0; i < ring_members; ++i) {
    members.emplace_back([&, i] {
      numbers& in = links[i];
      numbers& out = links[(i + 1) % ring_members];
      while (const auto token = in.recv()) {
        if (*token == 0) {
          last.send(i);
        } else {
          out.send(*token - 1);
        }
      }
    });
  }
  links[0].send(a.n);
  const std::uint64_t at = *last.recv();
  const outcome out = w.stop(a.n, at == a.n % ring_members);
  for (numbers& link : links) link.close();
  for (std::thread& t : members) t.join();
  return out;
}
const registered ring_workload{{"ring", 30'000, 3'000, ring}};

outcome pipeline(const arguments& a) {
  std::deque<numbers> links(pipeline_stages + 1);
  std::vector<std::thread> stages;
  const stopwatch w;
  for (std::size_t s = 0; s < pipeline_stages; ++s) {
    stages.emplace_back([&in = links[s], &out = links[s + 1]] {
      while (const auto v = in.recv()) out.send(*v + 1);
      out.close();
    });
  }
  stages.emplace_back([&] {
    for (std::uint64_t i = 0; i < a.n; ++i) links.front().send(i);
    links.front().close();
  });
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  for (; const auto v = links.back().recv(); ++count) sum += *v;
  const bool ok = count == a.n && sum == sum_below(a.n) + a.n * pipeline_stages;
  const outcome out = w.stop(a.n * pipeline_stages, ok);
  for (std::thread& t : stages) t.join();
  return out;
}
const registered pipeline_workload{{"pipeline", 300, 30, pipeline}};

}  // namespace
}  // namespace bench
