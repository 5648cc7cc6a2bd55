// Servers: one thread a connection.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "../common/http.h"
#include "../common/load.h"
#include "threads.h"

namespace bench {
namespace {

bool send_all(int fd, const char* data, std::size_t size) {
  return ::send(fd, data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

void echo(int fd) {
  std::array<char, 4096> buffer;
  for (ssize_t n; (n = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
    if (!send_all(fd, buffer.data(), static_cast<std::size_t>(n))) return;
  }
}

void hello(int fd) {
  std::array<char, 4096> buffer;
  std::size_t filled = 0;
  for (ssize_t n; (n = ::recv(fd, buffer.data() + filled, buffer.size() - filled, 0)) > 0;) {
    filled += static_cast<std::size_t>(n);
    while (const std::size_t size = http_request_size({buffer.data(), filled})) {
      std::memmove(buffer.data(), buffer.data() + size, filled -= size);
      if (!send_all(fd, http_answer.data(), http_answer.size())) return;
    }
  }
}

int listen_anywhere(std::uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ::bind(fd, reinterpret_cast<sockaddr*>(&at), size);
  ::listen(fd, 4096);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  port = ntohs(at.sin_port);
  return fd;
}

// Until the listener is shut down.
void accept_all(int listener, void (*serve)(int)) {
  std::vector<std::thread> threads;
  for (int fd; (fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    threads.emplace_back([fd, serve] {
      serve(fd);
      ::close(fd);
    });
  }
  for (std::thread& t : threads) t.join();
}

outcome run_server(void (*serve)(int), load_shape shape, const arguments& a) {
  std::uint16_t port = 0;
  const int listener = listen_anywhere(port);
  std::thread acceptor([&] {
    confine_to(a.procs);
    accept_all(listener, serve);
  });
  const outcome out = run_load(port, shape, a.n);
  ::shutdown(listener, SHUT_RDWR);
  acceptor.join();
  ::close(listener);
  return out;
}

const registered r1{{"echo_64", 300'000, 20'000, [](const arguments& a) { return run_server(echo, {64, "echo"}, a); }}};
const registered r2{{"echo_1000", 300'000, 20'000, [](const arguments& a) {
                       return run_server(echo, {1000, "echo"}, a);
                     }}};
const registered r3{{"http_hello", 300'000, 20'000, [](const arguments& a) {
                       return run_server(hello, {64, "http"}, a);
                     }}};
const registered r4{{"http_wrk", 3, 1, [](const arguments& a) { return run_server(hello, {64, "wrk"}, a); }}};

}  // namespace

bool is_network(const std::string& workload) { return workload.starts_with("echo_") || workload.starts_with("http_"); }

}  // namespace bench
