// Values between fibers. A buffered_channel of capacity 2^k holds 2^k - 1, which is as near as it comes to Go's.
#include <array>
#include <vector>

#include "fibers.h"

namespace bench {
namespace {

using fibers::channel_op_status;
using channel = fibers::unbuffered_channel<std::uint64_t>;

std::uint64_t receive(channel& c) {
  std::uint64_t v = 0;
  c.pop(v);
  return v;
}

outcome pingpong(const arguments& a) {
  channel ping;
  channel pong;
  const stopwatch w;
  auto other = spawn_fiber([&] {
    for (std::uint64_t v = 0; ping.pop(v) == channel_op_status::success;) pong.push(v + 1);
  });
  std::uint64_t v = 0;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    ping.push(v);
    v = receive(pong);
  }
  const outcome out = w.stop(a.n, v == a.n);
  ping.close();
  other.join();
  return out;
}
const registered pingpong_workload{{"pingpong", 1'000'000, 100'000, pingpong}};

outcome buffered(const arguments& a) {
  fibers::buffered_channel<std::uint64_t> ch(128);
  const stopwatch w;
  auto producer = spawn_fiber([&] {
    for (std::uint64_t i = 0; i < a.n; ++i) ch.push(i);
    ch.close();
  });
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  for (std::uint64_t v = 0; ch.pop(v) == channel_op_status::success; ++count) sum += v;
  const outcome out = w.stop(a.n, count == a.n && sum == sum_below(a.n));
  producer.join();
  return out;
}
const registered buffered_workload{{"buffered", 10'000'000, 1'000'000, buffered}};

outcome mpmc(const arguments& a) {
  constexpr std::uint64_t sides = 4;
  const std::uint64_t each = a.n / sides;
  fibers::buffered_channel<std::uint64_t> ch(64);
  wait_group producers(sides);
  wait_group consumers(sides);
  std::atomic<std::uint64_t> sum{0};
  std::atomic<std::uint64_t> count{0};
  const stopwatch w;
  for (std::uint64_t p = 0; p < sides; ++p) {
    go([&, p] {
      for (std::uint64_t i = 0; i < each; ++i) ch.push(p * each + i);
      producers.done();
    });
    go([&] {
      std::uint64_t my_sum = 0;
      std::uint64_t my_count = 0;
      for (std::uint64_t v = 0; ch.pop(v) == channel_op_status::success; ++my_count) my_sum += v;
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

outcome ring(const arguments& a) {
  std::vector<channel> links(ring_members);
  channel last;
  std::vector<fibers::fiber> members;
  const stopwatch w;
  for (std::uint64_t i = 0; i < ring_members; ++i) {
    members.push_back(spawn_fiber([&, i] {
      channel& in = links[i];
      channel& out = links[(i + 1) % ring_members];
      for (std::uint64_t token = 0; in.pop(token) == channel_op_status::success;) {
        if (token == 0) {
          last.push(i);
        } else {
          out.push(token - 1);
        }
      }
    }));
  }
  links[0].push(a.n);
  const std::uint64_t at = receive(last);
  const outcome out = w.stop(a.n, at == a.n % ring_members);
  for (channel& link : links) link.close();
  for (fibers::fiber& f : members) f.join();
  return out;
}
const registered ring_workload{{"ring", 3'000'000, 300'000, ring}};

outcome pipeline(const arguments& a) {
  std::vector<channel> links(pipeline_stages + 1);
  std::vector<fibers::fiber> stages;
  const stopwatch w;
  for (int s = 0; s < pipeline_stages; ++s) {
    stages.push_back(spawn_fiber([&in = links[s], &out = links[s + 1]] {
      for (std::uint64_t v = 0; in.pop(v) == channel_op_status::success;) out.push(v + 1);
      out.close();
    }));
  }
  stages.push_back(spawn_fiber([&] {
    for (std::uint64_t i = 0; i < a.n; ++i) links.front().push(i);
    links.front().close();
  }));
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  for (std::uint64_t v = 0; links.back().pop(v) == channel_op_status::success; ++count) sum += v;
  const bool ok = count == a.n && sum == sum_below(a.n) + a.n * pipeline_stages;
  const outcome out = w.stop(a.n * pipeline_stages, ok);
  for (fibers::fiber& f : stages) f.join();
  return out;
}
const registered pipeline_workload{{"pipeline", 30'000, 3'000, pipeline}};

outcome sieve(const arguments& a) {
  const std::uint64_t limit = nth_prime(a.n);
  const stopwatch w;
  auto in = std::make_shared<channel>();
  go([out = in, limit] {
    for (std::uint64_t i = 2; i <= limit; ++i) out->push(i);
    out->close();
  });
  std::uint64_t count = 0;
  std::uint64_t last = 0;
  for (std::uint64_t prime = 0; in->pop(prime) == channel_op_status::success; ++count) {
    last = prime;
    auto out = std::make_shared<channel>();
    go([in, out, prime] {
      for (std::uint64_t v = 0; in->pop(v) == channel_op_status::success;) {
        if (v % prime != 0) out->push(v);
      }
      out->close();
    });
    in = std::move(out);
  }
  return w.stop(a.n, count == a.n && last == limit);
}
const registered sieve_workload{{"sieve", 2'000, 200, sieve}};

void skynet_node(channel& parent, std::uint64_t ordinal, std::uint64_t size) {
  if (size == 1) {
    parent.push(ordinal);
    return;
  }
  // The last child may still be inside push() when the last value is here: the channel lives until all have gone.
  auto children = std::make_shared<channel>();
  for (std::uint64_t i = 0; i < 10; ++i) {
    go([children, first = ordinal + i * (size / 10), size] { skynet_node(*children, first, size / 10); });
  }
  std::uint64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum += receive(*children);
  parent.push(sum);
}

outcome skynet(const arguments& a) {
  const std::uint64_t leaves = power_of_ten_up_to(a.n);
  const stopwatch w;
  auto result = std::make_shared<channel>();
  go([result, leaves] { skynet_node(*result, 0, leaves); });
  const std::uint64_t sum = receive(*result);
  return w.stop(leaves, sum == sum_below(leaves));
}
const registered skynet_workload{{"skynet", 1'000'000, 10'000, skynet}};

}  // namespace
}  // namespace bench
