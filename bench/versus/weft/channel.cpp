// Values between goroutines. Compiled once <weft/chan.h> exists.
#include <weft/weft.h>

#include <array>
#include <vector>

#include "sched.h"

namespace bench {
namespace {

using channel = weft::chan<std::uint64_t>;

outcome pingpong(const arguments& a) {
  channel ping;
  channel pong;
  const stopwatch w;
  weft::go([ping, pong] {
    for (const std::uint64_t v : ping) pong.send(v + 1);
    pong.close();
  });
  std::uint64_t v = 0;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    ping.send(v);
    v = *pong.recv();
  }
  outcome out = w.stop(a.n);
  ping.close();
  out.ok = v == a.n && !pong.recv().has_value();
  return out;
}
const registered pingpong_workload{{"pingpong", 1'000'000, 100'000, pingpong}};

outcome buffered(const arguments& a) {
  channel ch(128);
  const stopwatch w;
  weft::go([ch, n = a.n] {
    for (std::uint64_t i = 0; i < n; ++i) ch.send(i);
    ch.close();
  });
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  for (const std::uint64_t v : ch) {
    sum += v;
    ++count;
  }
  return w.stop(a.n, count == a.n && sum == sum_below(a.n));
}
const registered buffered_workload{{"buffered", 10'000'000, 1'000'000, buffered}};

outcome mpmc(const arguments& a) {
  constexpr std::uint64_t sides = 4;
  const std::uint64_t each = a.n / sides;
  channel ch(64);
  wait_group producers;
  wait_group consumers;
  std::atomic<std::uint64_t> sum{0};
  std::atomic<std::uint64_t> count{0};
  producers.add(sides);
  consumers.add(sides);
  const stopwatch w;
  for (std::uint64_t p = 0; p < sides; ++p) {
    weft::go([&, p] {
      for (std::uint64_t i = 0; i < each; ++i) ch.send(p * each + i);
      producers.done();
    });
    weft::go([&] {
      std::uint64_t my_sum = 0;
      std::uint64_t my_count = 0;
      for (const std::uint64_t v : ch) {
        my_sum += v;
        ++my_count;
      }
      sum += my_sum;
      count += my_count;
      consumers.done();
    });
  }
  producers.wait();
  ch.close();
  consumers.wait();
  const std::uint64_t total = each * sides;
  return w.stop(total, count == total && sum == sum_below(total));
}
const registered mpmc_workload{{"mpmc", 4'000'000, 400'000, mpmc}};

outcome select_over_two(std::uint64_t n, std::size_t capacity) {
  const std::uint64_t each = n / 2;
  channel a(capacity);
  channel b(capacity);
  const auto produce = [each](const channel& ch, std::uint64_t first) {
    for (std::uint64_t i = 0; i < each; ++i) ch.send(first + i);
  };
  const stopwatch w;
  weft::go(produce, a, 0);
  weft::go(produce, b, each);
  std::uint64_t sum = 0;
  const auto add = [&sum](std::optional<std::uint64_t> v) { sum += *v; };
  for (std::uint64_t i = 0; i < 2 * each; ++i) weft::select(weft::on_recv(a, add), weft::on_recv(b, add));
  return w.stop(2 * each, sum == sum_below(2 * each));
}
outcome select2(const arguments& a) { return select_over_two(a.n, 0); }
outcome select2_buffered(const arguments& a) { return select_over_two(a.n, 128); }
const registered select2_workload{{"select2", 2'000'000, 200'000, select2}};
const registered select2_buffered_workload{{"select2_buf", 4'000'000, 400'000, select2_buffered}};

outcome select16(const arguments& a) {
  const std::uint64_t each = a.n / select_sources;
  std::array<channel, select_sources> sources;
  const stopwatch w;
  for (std::uint64_t s = 0; s < select_sources; ++s) {
    weft::go([out = sources[s], first = s * each, each] {
      for (std::uint64_t i = 0; i < each; ++i) out.send(first + i);
    });
  }
  std::uint64_t sum = 0;
  const auto add = [&sum](std::optional<std::uint64_t> v) { sum += *v; };
  const auto take_one = [&add](const auto&... from) { weft::select(weft::on_recv(from, add)...); };
  const std::uint64_t total = each * select_sources;
  for (std::uint64_t i = 0; i < total; ++i) std::apply(take_one, sources);
  return w.stop(total, sum == sum_below(total));
}
const registered select16_workload{{"select16", 1'000'000, 100'000, select16}};

// The token counts down; whoever receives 0 says who it is, and the ring is closed.
outcome ring(const arguments& a) {
  std::vector<channel> links;
  for (int i = 0; i < ring_members; ++i) links.emplace_back();
  channel last;
  wait_group members;
  members.add(ring_members);
  const stopwatch w;
  for (std::uint64_t i = 0; i < ring_members; ++i) {
    weft::go([&, i] {
      const channel in = links[i];
      const channel out = links[(i + 1) % ring_members];
      for (const std::uint64_t token : in) {
        if (token == 0) {
          last.send(i);
        } else {
          out.send(token - 1);
        }
      }
      members.done();
    });
  }
  links[0].send(a.n);
  const std::uint64_t at = *last.recv();
  const outcome out = w.stop(a.n, at == a.n % ring_members);
  for (const channel& link : links) link.close();
  members.wait();
  return out;
}
const registered ring_workload{{"ring", 3'000'000, 300'000, ring}};

outcome pipeline(const arguments& a) {
  const stopwatch w;
  const channel first;
  channel last = first;
  for (int s = 0; s < pipeline_stages; ++s) {
    const channel out;
    weft::go([in = last, out] {
      for (const std::uint64_t v : in) out.send(v + 1);
      out.close();
    });
    last = out;
  }
  weft::go([first, n = a.n] {
    for (std::uint64_t i = 0; i < n; ++i) first.send(i);
    first.close();
  });
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  for (const std::uint64_t v : last) {
    sum += v;
    ++count;
  }
  return w.stop(a.n * pipeline_stages, count == a.n && sum == sum_below(a.n) + a.n * pipeline_stages);
}
const registered pipeline_workload{{"pipeline", 30'000, 3'000, pipeline}};

// Sends the numbers up to the n-th prime through a chain that grows by one filter a prime: n of them.
outcome sieve(const arguments& a) {
  const std::uint64_t limit = nth_prime(a.n);
  const stopwatch w;
  channel in;
  weft::go([out = in, limit] {
    for (std::uint64_t i = 2; i <= limit; ++i) out.send(i);
    out.close();
  });
  std::uint64_t count = 0;
  std::uint64_t last = 0;
  while (const std::optional<std::uint64_t> prime = in.recv()) {
    ++count;
    last = *prime;
    const channel out;
    weft::go([in, out, prime = *prime] {
      for (const std::uint64_t v : in) {
        if (v % prime != 0) out.send(v);
      }
      out.close();
    });
    in = out;
  }
  return w.stop(a.n, count == a.n && last == limit);
}
const registered sieve_workload{{"sieve", 2'000, 200, sieve}};

// Sends the sum of the ordinals of the `size` leaves below it to parent.
void skynet_node(const channel& parent, std::uint64_t ordinal, std::uint64_t size) {
  if (size == 1) {
    parent.send(ordinal);
    return;
  }
  const channel children;
  for (std::uint64_t i = 0; i < 10; ++i) weft::go(skynet_node, children, ordinal + i * (size / 10), size / 10);
  std::uint64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum += *children.recv();
  parent.send(sum);
}

outcome skynet(const arguments& a) {
  const std::uint64_t leaves = power_of_ten_up_to(a.n);
  const channel result;
  const stopwatch w;
  weft::go(skynet_node, result, 0, leaves);
  const std::uint64_t sum = *result.recv();
  return w.stop(leaves, sum == sum_below(leaves));
}
const registered skynet_workload{{"skynet", 1'000'000, 10'000, skynet}};

}  // namespace
}  // namespace bench
