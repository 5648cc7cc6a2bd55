// net-load PORT CONNECTIONS REQUESTS echo|http: the load of the network workloads, one thread with epoll.
// net-load PORT CONNECTIONS SECONDS wrk: has wrk(1) make it.
//
// Connects, prints one byte, and then keeps one request under way on each connection until so many have been answered.
// With wrk it prints how many were, after the byte. Exit code 0 if every answer was right.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../common/http.h"
#include "wrk.h"

namespace {

constexpr const char* usage =
    "usage: net-load PORT CONNECTIONS REQUESTS echo|http\n"
    "       net-load PORT CONNECTIONS SECONDS wrk\n";

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

int connect_to(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fail("net-load: connect");
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

struct load {
  std::string request;
  std::string answer;  // what must come back
};

load make(std::string_view kind) {
  if (kind == "http") return {"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: net-load\r\nAccept: */*\r\n\r\n", {}};
  const std::string text(64, 'e');
  return {text, text};
}

// The answer of an HTTP server may have more header lines than ours: its body is what counts.
bool complete(const load& l, const std::string& got, bool& wrong) {
  if (!l.answer.empty()) {
    wrong = l.answer.compare(0, got.size(), got) != 0;
    return got.size() >= l.answer.size();
  }
  const std::size_t head = got.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  constexpr std::string_view body = "Hello, world!";
  if (got.size() < head + 4 + body.size()) return false;
  wrong = !got.starts_with("HTTP/1.1 200") || got.substr(head + 4) != body;
  return true;
}

int misunderstood() {
  std::fputs(usage, stderr);
  return 64;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) return std::fputs(usage, stdout) < 0;
  const std::string_view kind = argc == 5 ? argv[4] : "";
  if (kind != "echo" && kind != "http" && kind != "wrk") return misunderstood();
  const int port = std::atoi(argv[1]);
  const int wanted = std::atoi(argv[2]);
  const long requests = std::atol(argv[3]);
  if (port < 1 || port > 65535 || wanted < 1 || requests < 1) return misunderstood();
  if (kind == "wrk") return run_wrk(port, wanted, static_cast<int>(requests));
  const auto connections = static_cast<std::size_t>(wanted);
  const load work = make(kind);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);

  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<int> fds;
  std::vector<std::string> got(connections);
  for (std::size_t i = 0; i < connections; ++i) {
    fds.push_back(connect_to(port));
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    if (::epoll_ctl(poll, EPOLL_CTL_ADD, fds.back(), &event) != 0) fail("net-load: epoll_ctl");
  }
  if (::write(1, "c", 1) != 1) fail("net-load: write");

  const auto send_on = [&](std::size_t i) {
    if (::send(fds[i], work.request.data(), work.request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(work.request.size())) {
      fail("net-load: send");
    }
  };
  for (std::size_t i = 0; i < connections; ++i) send_on(i);
  std::vector<epoll_event> events(256);
  for (long answered = 0; answered < requests;) {
    const int n = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), 60'000);
    if (n == 0) fail("net-load: no answer for a minute");
    for (int e = 0; e < n; ++e) {
      const std::size_t i = events[static_cast<std::size_t>(e)].data.u64;
      char buffer[4096];
      const ssize_t size = ::recv(fds[i], buffer, sizeof buffer, 0);
      if (size <= 0) fail("net-load: recv");
      got[i].append(buffer, static_cast<std::size_t>(size));
      bool wrong = false;
      if (!complete(work, got[i], wrong)) continue;
      if (wrong) {
        std::fprintf(stderr, "net-load: a wrong answer\n");
        return 1;
      }
      got[i].clear();
      ++answered;
      send_on(i);
    }
  }
  return 0;
}
