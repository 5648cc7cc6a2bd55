// Sockets under stress: ten thousand connections at once, and clients that behave badly in every way, on 1 to 8 Ps, for as
// long as the environment says:
//
//   WEFT_STRESS_SECONDS=N   in all (3 if not set)
//   WEFT_SOAK=1             120 seconds
//   WEFT_STRESS_SEED=N      repeats the decisions (not the interleavings) of the run that printed this seed
//
// What a well-behaved client sent comes back, whole and in order, whatever the others do; and after each round no
// descriptor, no goroutine and no waiter is left. If nothing happens for a minute, the watchdog says what was going on and
// aborts.
#include <weft/weft.h>

#include <gtest/gtest.h>

#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/await.h"
#include "support/build.h"
#include "support/net.h"
#include "support/stress.h"
#include "support/subprocess.h"

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
namespace net = weft::net;
using test::progress;
using test::random_source;

std::atomic<int> procs_now = 0;

void say_what_is_going_on() {
  const auto s = weft::runtime::read_sched_stats();
  std::fprintf(stderr,
               "nothing has happened for a minute: seed %" PRIu64 ", %d Ps, %" PRIu64 " steps, %" PRIu64 " goroutines, %" PRIu64
               " wait for descriptors, %d idle Ps, %d spinning, %" PRIu64 " polls, %" PRIu64 " waits in the poller\n",
               test::stress_seed(), procs_now.load(), progress.load(), s.goroutines, s.io_waiting, s.idle_procs,
               s.spinning_threads, s.netpolls, s.netpoll_waits);
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  DIR* const dir = ::opendir("/proc/self/fd");
  while (::readdir(dir) != nullptr) ++n;
  ::closedir(dir);
  return n;
}

// As many descriptors as the system allows, up to what is asked for; returns how many there are.
std::size_t raise_descriptor_limit(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted) {
    const rlimit more{wanted, std::max<rlim_t>(wanted, limit.rlim_max)};  // for root
    if (::setrlimit(RLIMIT_NOFILE, &more) != 0) {
      limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
      ::setrlimit(RLIMIT_NOFILE, &limit);
    }
  }
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Everything that the round began is over.
void expect_nothing_left(std::size_t descriptors_before) {
  test::await_solitude();
  test::await([] { return weft::runtime::read_sched_stats().io_waiting == 0; });
  test::await([=] { return open_descriptors() <= descriptors_before; });  // the runtime's threads open some for a moment
}

// ---- ten thousand connections ----

void echo(net::conn& c) {
  std::array<char, 512> buffer;
  std::error_code ec;
  while (const std::size_t n = c.read(buffer, ec)) {
    c.write({buffer.data(), n}, ec);
    if (ec) return;
    ++progress;
  }
}

constexpr int procs = 2;
// sysmon, the factory of threads, one M in the poller and one in reserve. Where a sanitizer or a busy machine stretches the
// moments in which an M is neither running nor asleep, one more is made now and then.
constexpr std::size_t allowance = 10;
const std::size_t connections = test::scaled(10'000, 3'000, 1'500);
const char* const where_variable = "WEFT_STRESS_WHERE";

// In a process of its own: one that has both ends of so many connections needs more descriptors than most systems allow.
void dial_and_talk() {
  raise_descriptor_limit(connections + 200);
  weft::run(
      [&] {
        const std::string where = std::getenv(where_variable);
        std::atomic<std::size_t> right = 0;
        weft::latch everybody(static_cast<std::ptrdiff_t>(connections));
        weft::wait_group clients;
        weft::counting_semaphore<> dialing(100);  // a listener's queue is not endless
        for (std::size_t i = 0; i < connections; ++i) {
          clients.go([&, i] {
            dialing.acquire();
            net::conn c = net::dial_tcp(where);
            dialing.release();
            everybody.arrive_and_wait();
            for (int round = 0; round < 2; ++round) {
              const std::string text = "message " + std::to_string(round) + " of " + std::to_string(i);
              std::string back(text.size(), ' ');
              c.write(text);
              c.read_full(back);
              right += back == text;
            }
          });
        }
        clients.wait();
        std::printf("right %zu\n", right.load());
        std::printf("threads %zu\n", test::threads_without_preempted());
      },
      {.procs = procs});
}

const test::scenario dialers("dialers", &dial_and_talk);

TEST(net_stress, ten_thousand_connections_at_once_need_no_more_threads_than_a_few) {
  raise_descriptor_limit(connections + 200);
  const test::watchdog dog(say_what_is_going_on);
  procs_now = procs;
  weft::run(
      [&] {
        const std::size_t before = open_descriptors();
        net::listener listener = net::listen_tcp("127.0.0.1:0");
        weft::wait_group servers;
        std::atomic<std::size_t> accepted = 0;
        std::size_t threads = 0;
        servers.go([&] {
          std::error_code ec;
          for (;;) {
            net::conn c = listener.accept(ec);
            if (ec) return;
            ++progress;
            if (++accepted == connections) threads = test::threads_without_preempted();
            servers.go([c = std::move(c)]() mutable { echo(c); });
          }
        });
        const test::outcome end =
            weft::blocking([&] { return dialers.run({{where_variable, listener.local_address().to_string()}}, 200s); });
        EXPECT_EQ(end.exit_code, 0) << end;
        EXPECT_NE(end.out.find("right " + std::to_string(2 * connections) + "\n"), std::string::npos) << end;
        const std::size_t at = end.out.find("threads ");
        ASSERT_NE(at, std::string::npos) << end;
        const std::size_t their_threads = std::strtoul(end.out.c_str() + at + 8, nullptr, 10);
        EXPECT_EQ(accepted, connections);
        listener.close();
        servers.wait();
        std::printf("%zu connections, %zu and %zu threads\n", connections, threads, their_threads);
        EXPECT_LE(their_threads, procs + allowance);
        EXPECT_LE(threads, procs + allowance + 1);  // one is in the blocking call that waits for the dialers
        expect_nothing_left(before);
      },
      {.procs = procs});
}

// ---- clients that misbehave ----

// What byte number i of stream number s is.
char byte_of(std::uint64_t s, std::size_t i) { return static_cast<char>((s * 131 + i * 7) ^ (i >> 8)); }

std::string make_text(std::uint64_t s, std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = byte_of(s, i);
  return text;
}

// What the server does with a connection: echoes, sometimes slowly, with a deadline that half-open clients run into.
void serve(net::conn c, random_source random) {
  std::array<char, 8192> buffer;
  const std::size_t size = 1 + random.below(buffer.size());
  const bool has_deadline = random.one_in(2);
  std::error_code ec;
  for (;;) {
    if (has_deadline) c.set_deadline(clock::now() + 100s);
    const std::size_t n = c.read({buffer.data(), size}, ec);
    if (n == 0) return;
    c.write({buffer.data(), n}, ec);
    if (ec) return;
    ++progress;
    if (random.one_in(64)) weft::sleep_for(std::chrono::microseconds(random.below(300)));
  }
}

// A read that gives up now and then, and goes on.
std::size_t read_patiently(net::conn& c, char* to, std::size_t size, random_source& random) {
  for (;;) {
    std::error_code ec;
    if (random.one_in(3)) {
      c.set_read_deadline(clock::now() + std::chrono::microseconds(random.below(500)) - 50us);
    } else {
      c.set_read_deadline(clock::time_point::max());
    }
    const std::size_t n = c.read({to, size}, ec);
    if (ec == std::errc::timed_out) continue;
    if (ec) throw std::system_error(ec);
    return n;
  }
}

enum class manner { good, tiny_writes, slow_reader, deadlines, half_close };

// Sends a text and receives it again, at the same time. True: it came back as it was.
bool exchange(net::conn& c, manner how, std::uint64_t stream, random_source& random) {
  const std::string text = make_text(stream, how == manner::tiny_writes ? 1 + random.below(300) : 1 + random.below(200'000));
  weft::wait_group writer;
  const std::uint64_t writer_seed = stream * 977 + 13;
  writer.go([&] {
    random_source own(writer_seed);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t most = how == manner::tiny_writes ? 1 : 1 + own.below(60'000);
      const std::size_t n = std::min(most, text.size() - at);
      c.write({text.data() + at, n});
      at += n;
      ++progress;
      if (own.one_in(16)) weft::yield();
    }
    if (how == manner::half_close) c.shutdown_write();
  });
  std::string back(text.size(), ' ');
  std::size_t got = 0;
  while (got < back.size()) {
    const std::size_t most = how == manner::slow_reader ? 1 + random.below(3000) : back.size() - got;
    const std::size_t n = std::min(most, back.size() - got);
    const std::size_t r = how == manner::deadlines ? read_patiently(c, back.data() + got, n, random) : c.read({back.data() + got, n});
    if (r == 0) break;
    got += r;
    ++progress;
    if (how == manner::slow_reader && random.one_in(8)) weft::sleep_for(std::chrono::microseconds(random.below(100)));
  }
  writer.wait();
  if (how == manner::half_close) {
    char more;
    if (c.read({&more, 1}) != 0) return false;
  }
  return back == text;
}

// A client that is torn away in the middle: by another goroutine that closes it, by a reset, by destruction.
void torn_away(net::conn c, random_source& random) {
  if (random.one_in(2)) {
    const linger reset{1, 0};
    ::setsockopt(c.native_handle(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  const std::string text(1 + random.below(300'000), 't');
  weft::wait_group users;
  users.go([&] {
    std::error_code ec;
    while (!ec) c.write(text, ec);
    ++progress;
  });
  users.go([&] {
    std::error_code ec;
    std::array<char, 1024> buffer;
    while (c.read(buffer, ec) != 0) {
    }
    ++progress;
  });
  if (random.one_in(2)) weft::sleep_for(std::chrono::microseconds(random.below(500)));
  c.close();
  users.wait();
}

// Connects and says nothing.
void half_open(net::conn c, random_source& random) {
  std::error_code ec;
  char byte;
  c.set_deadline(clock::now() + std::chrono::microseconds(random.below(2000)));
  c.read({&byte, 1}, ec);
  EXPECT_EQ(ec, std::errc::timed_out);
  ++progress;
}

void client(const std::string& where, bool is_unix, std::uint64_t stream) {
  random_source random(test::stress_seed() * 31 + stream);
  net::conn c = is_unix ? net::dial_unix(where) : net::dial_tcp(where);
  switch (random.below(8)) {
    case 0:
      return torn_away(std::move(c), random);
    case 1:
      return half_open(std::move(c), random);
    case 2:
      EXPECT_TRUE(exchange(c, manner::tiny_writes, stream, random));
      break;
    case 3:
      EXPECT_TRUE(exchange(c, manner::slow_reader, stream, random));
      break;
    case 4:
      EXPECT_TRUE(exchange(c, manner::deadlines, stream, random));
      break;
    case 5:
      EXPECT_TRUE(exchange(c, manner::half_close, stream, random));
      break;
    default:
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(exchange(c, manner::good, stream * 3 + static_cast<std::uint64_t>(i), random));
  }
}

void round_of(random_source& random, int round) {
  const std::size_t before = open_descriptors();
  const bool is_unix = random.one_in(4);
  net::listener listener = is_unix ? net::listen_unix("@weft-stress-" + std::to_string(::getpid()) + "-" + std::to_string(round))
                                   : net::listen_tcp("127.0.0.1:0");
  const std::string where = listener.local_address().to_string();
  weft::wait_group servers;
  std::atomic<std::uint64_t> accepted = 0;
  const int acceptors = 1 + static_cast<int>(random.below(3));
  for (int i = 0; i < acceptors; ++i) {
    servers.go([&] {
      std::error_code ec;
      for (;;) {
        net::conn c = listener.accept(ec);
        if (ec) return;
        servers.go([c = std::move(c), n = ++accepted]() mutable { serve(std::move(c), random_source(n)); });
      }
    });
  }
  weft::wait_group clients;
  std::vector<std::thread> outside;
  const auto base = static_cast<std::uint64_t>(round) * 10'000;
  const std::uint64_t n = test::scaled(120, 50, 30);
  for (std::uint64_t i = 0; i < n; ++i) clients.go([&, i] { client(where, is_unix, base + i); });
  const std::uint64_t threads = random.below(4);
  for (std::uint64_t i = 0; i < threads; ++i) outside.emplace_back([&, i] { client(where, is_unix, base + 5000 + i); });
  clients.wait();
  weft::blocking([&] {
    for (std::thread& t : outside) t.join();
  });
  listener.close();
  servers.wait();
  expect_nothing_left(before);
}

TEST(net_stress, what_well_behaved_clients_send_comes_back_whatever_the_others_do) {
  std::printf("WEFT_STRESS_SEED=%" PRIu64 "\n", test::stress_seed());
  const test::watchdog dog(say_what_is_going_on);
  random_source random(test::stress_seed());
  const auto end = clock::now() + test::stress_duration();
  constexpr int sizes[] = {1, 2, 8, 3, 4};
  int rounds = 0;
  do {
    procs_now = sizes[rounds % 5];
    weft::run([&] { round_of(random, rounds); }, {.procs = procs_now});
    ++rounds;
    if (testing::Test::HasFailure()) break;
  } while (clock::now() < end);
  std::printf("%d rounds, %" PRIu64 " steps\n", rounds, progress.load());
}

}  // namespace
