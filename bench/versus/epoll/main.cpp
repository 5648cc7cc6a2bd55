// versus-epoll: the network workloads as bare servers, P threads with an epoll each; level-triggered, so that a request
// is one recv, one send and its share of an epoll_wait.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../common/harness.h"
#include "../common/http.h"
#include "../common/load.h"

namespace {

struct connection {
  int fd;
  std::string pending;  // of an HTTP request
};

// Returns false when the connection is over.
using handler = bool (*)(connection&);

bool echo(connection& c) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::recv(c.fd, buffer.data(), buffer.size(), 0);
  return n > 0 && ::send(c.fd, buffer.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
}

bool hello(connection& c) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::recv(c.fd, buffer.data(), buffer.size(), 0);
  if (n <= 0) return false;
  c.pending.append(buffer.data(), static_cast<std::size_t>(n));
  while (const std::size_t size = bench::http_request_size(c.pending)) {
    c.pending.erase(0, size);
    if (::send(c.fd, bench::http_answer.data(), bench::http_answer.size(), MSG_NOSIGNAL) < 0) return false;
  }
  return true;
}

class server {
 public:
  server(handler serve, int threads) : serve_(serve) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&at), size);
    ::listen(listener_, 4096);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    stop_ = ::eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < threads; ++i) polls_.push_back(::epoll_create1(EPOLL_CLOEXEC));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { loop(static_cast<std::size_t>(i)); });
  }
  ~server() {
    ::eventfd_write(stop_, 1);
    for (std::thread& t : threads_) t.join();
    for (int p : polls_) ::close(p);
    ::close(listener_);
    ::close(stop_);
  }

  std::uint16_t port() const { return port_; }

 private:
  static void watch(int poll, int fd, void* data) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = data}};
    ::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
  }

  // The first thread accepts and deals the connections out.
  void accept_all() {
    for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      watch(polls_[next_++ % polls_.size()], fd, new connection{fd, {}});
    }
  }

  void loop(std::size_t index) {
    const int poll = polls_[index];
    if (index == 0) watch(poll, listener_, this);
    watch(poll, stop_, nullptr);
    for (std::array<epoll_event, 256> events;;) {
      const int n = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < n; ++i) {
        void* const who = events[static_cast<std::size_t>(i)].data.ptr;
        if (who == nullptr) return;
        if (who == this) {
          accept_all();
          continue;
        }
        auto* c = static_cast<connection*>(who);
        if (serve_(*c)) continue;
        ::close(c->fd);
        delete c;
      }
    }
  }

  handler serve_;
  int listener_;
  int stop_;
  std::uint16_t port_;
  std::size_t next_ = 0;
  std::vector<int> polls_;
  std::vector<std::thread> threads_;
};

bench::outcome run_server(handler serve, bench::load_shape shape, const bench::arguments& a) {
  server s(serve, a.procs);
  return bench::run_load(s.port(), shape, a.n);
}

const bench::registered r1{{"echo_64", 300'000, 20'000, [](const bench::arguments& a) { return run_server(echo, {64, "echo"}, a); }}};
const bench::registered r2{{"echo_1000", 300'000, 20'000, [](const bench::arguments& a) { return run_server(echo, {1000, "echo"}, a); }}};
const bench::registered r3{{"http_hello", 300'000, 20'000, [](const bench::arguments& a) { return run_server(hello, {64, "http"}, a); }}};
const bench::registered r4{{"http_wrk", 3, 1, [](const bench::arguments& a) { return run_server(hello, {64, "wrk"}, a); }}};

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(argc, argv, "epoll", "-", [](const std::string&, int, const std::function<void()>& body) { body(); });
}
