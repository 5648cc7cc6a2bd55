// What tests of sockets share.
#pragma once

#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "support/await.h"

namespace test {

struct connected_pair {
  weft::net::conn a;
  weft::net::conn b;
};

inline connected_pair pair_of_conns() {
  weft::net::listener listener = weft::net::listen_tcp("127.0.0.1:0");
  connected_pair pair;
  pair.a = weft::net::dial_tcp(listener.local_address().to_string());
  pair.b = listener.accept();
  return pair;
}

// The error that a call reports.
template <class F>
std::error_code error_of(F f) {
  std::error_code ec;
  f(ec);
  return ec;
}

// Until the end of the stream.
template <class Stream>
std::string read_all(Stream& stream) {
  std::string all;
  std::array<char, 16 * 1024> buffer;
  while (const std::size_t n = stream.read(buffer)) all.append(buffer.data(), n);
  return all;
}

// Waits until this many goroutines or threads wait for descriptors now.
inline void await_io_waits(std::uint64_t count, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  await([=] { return weft::runtime::read_sched_stats().io_waiting >= count; }, file, line);
}
inline void await_io_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { await_io_waits(1, file, line); }

// A goroutine whose P was taken in the middle of something, because this machine had no time for it, keeps its thread
// meanwhile.
inline std::size_t threads_without_preempted() {
  const std::size_t threads = weft::runtime::num_thread();
  const auto s = weft::runtime::read_sched_stats();
  return threads - std::min<std::size_t>(threads, s.preempted_running + s.preempted_blocked);
}

}  // namespace test
