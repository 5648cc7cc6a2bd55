// A chat server: what one says, all others read.
//
//   chat 127.0.0.1:7001    serves until it is killed; try it with several `nc 127.0.0.1 7001`
//   chat                   starts one and three clients, and checks what they read
//
// The room is a goroutine that owns the list of members, so nothing is locked: who comes, who goes and what is said reach
// it through channels, and it selects over them. Each member has a goroutine that reads its socket, and one that selects
// between the messages for it and a clock, and writes.
#include <weft/weft.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "usage.h"

namespace net = weft::net;
using namespace std::chrono_literals;

namespace {

constexpr const char* usage =
    "usage: chat ADDRESS  serves until it is killed; for example 127.0.0.1:7001\n"
    "       chat          starts a server and three clients, and checks what they read\n";

struct member {
  explicit member(net::conn c, int n) : connection(std::move(c)), name("guest" + std::to_string(n)) {}
  net::conn connection;
  std::string name;
  weft::chan<std::string> outgoing{64};
};
using member_ptr = std::shared_ptr<member>;

struct message {
  member_ptr from;
  std::string text;
};

struct room {
  weft::chan<member_ptr> joining{16};
  weft::chan<member_ptr> leaving{16};
  weft::chan<message> said{64};
  weft::chan<int> closing;

  void run() const {
    std::map<const member*, member_ptr> members;
    const auto tell = [&](const member* except, const std::string& text) {
      for (const auto& [key, m] : members) {
        std::string copy = text;
        // Who does not read in time misses something; the room does not wait for anybody.
        if (key != except) m->outgoing.try_send(copy);
      }
    };
    for (bool open = true; open;) {
      weft::select(
          weft::on_recv(joining,
                        [&](std::optional<member_ptr> who) {
                          const member_ptr m = std::move(who).value();
                          members[m.get()] = m;
                          tell(m.get(), "* " + m->name + " has come\n");
                          m->outgoing.try_send("* welcome, " + m->name + "\n");
                        }),
          weft::on_recv(leaving,
                        [&](std::optional<member_ptr> who) {
                          const member_ptr m = std::move(who).value();
                          members.erase(m.get());
                          m->outgoing.close();
                          tell(nullptr, "* " + m->name + " has gone\n");
                        }),
          weft::on_recv(said,
                        [&](std::optional<message> what) {
                          const message m = std::move(what).value();
                          tell(m.from.get(), m.from->name + ": " + m.text + "\n");
                        }),
          weft::on_recv(closing, [&](std::optional<int>) { open = false; }));
    }
    for (const auto& [key, m] : members) m->connection.close();
  }
};

// Who never ends a line must not fill our memory.
constexpr std::size_t longest_line = 64 * 1024;

// Calls f with each line that comes in. False if one was too long.
template <class F>
bool for_each_line(net::conn& c, F f) {
  std::string pending;
  std::array<char, 1024> buffer;
  std::error_code ec;
  while (const std::size_t n = c.read(buffer, ec)) {
    pending.append(buffer.data(), n);
    for (std::size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) f(pending.substr(0, end));
    if (pending.size() > longest_line) return false;
  }
  return true;
}

// Writes what there is to tell this member, and says now and then that the line is still up.
void write_to(const member_ptr& m) {
  for (bool open = true; open;) {
    std::string text;
    weft::select(weft::on_recv(m->outgoing,
                               [&](std::optional<std::string> s) {
                                 open = s.has_value();
                                 if (open) text = std::move(*s);
                               }),
                 weft::on_timeout(30s, [&] { text = "* nothing new\n"; }));
    std::error_code ec;
    m->connection.write(text, ec);
    if (ec) m->connection.close();  // the reader notices, and leaves the room
  }
}

void attend(const room& r, net::conn c, int number) {
  auto m = std::make_shared<member>(std::move(c), number);
  r.joining.send(m);
  weft::go([m] { write_to(m); });
  const bool fit = for_each_line(m->connection, [&](std::string line) { r.said.send({m, std::move(line)}); });
  if (!fit) m->outgoing.try_send("* your line is too long, good bye\n");
  r.leaving.send(m);
}

void serve(const room& r, net::listener& listener) {
  weft::wait_group members;
  std::error_code ec;
  for (int number = 1;; ++number) {
    net::conn c = listener.accept(ec);
    if (ec) break;
    members.go([&r, number, c = std::move(c)]() mutable { attend(r, std::move(c), number); });
  }
  members.wait();
}

std::string read_line(net::conn& c) {
  std::string line;
  for (char byte; c.read({&byte, 1}) == 1 && byte != '\n';) line += byte;
  return line;
}

bool expect(net::conn& c, std::string_view wanted) {
  const std::string line = read_line(c);
  std::printf("  %-28s %s\n", line.c_str(), line == wanted ? "" : "  <- unexpected");
  return line == wanted;
}

int demonstrate() {
  room r;
  weft::wait_group hall;
  hall.go([&] { r.run(); });
  net::listener listener = net::listen_tcp("127.0.0.1:0");
  const std::string where = listener.local_address().to_string();
  weft::wait_group server;
  server.go([&] { serve(r, listener); });

  bool right = true;
  {
    net::conn ann = net::dial_tcp(where);
    right &= expect(ann, "* welcome, guest1");
    net::conn bob = net::dial_tcp(where);
    right &= expect(bob, "* welcome, guest2") && expect(ann, "* guest2 has come");
    net::conn eve = net::dial_tcp(where);
    right &= expect(eve, "* welcome, guest3") && expect(ann, "* guest3 has come") && expect(bob, "* guest3 has come");
    ann.write("hello, all\n");
    right &= expect(bob, "guest1: hello, all") && expect(eve, "guest1: hello, all");
    eve.close();
    right &= expect(ann, "* guest3 has gone") && expect(bob, "* guest3 has gone");
    bob.write("bye\n");
    right &= expect(ann, "guest2: bye");
    bob.write(std::string(longest_line + 1, 'b'));
    right &= expect(bob, "* your line is too long, good bye") && expect(bob, "");  // and that was all
    right &= expect(ann, "* guest2 has gone");
  }
  listener.close();
  server.wait();
  r.closing.close();
  hall.wait();  // the room is ours: it must not be used any more when we leave
  std::printf(right ? "everybody read what they should\n" : "something was lost\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (example::asked_for_help(argc, argv, usage)) return 0;
  return example::run("chat", [&] {
    if (argc == 1) return demonstrate();
    if (argc != 2 || argv[1][0] == '-') return example::misunderstood(usage);
    net::listener listener = net::listen_tcp(argv[1]);
    example::say_where(listener);
    room r;
    weft::wait_group hall;
    hall.go([&] { r.run(); });
    serve(r, listener);
    r.closing.close();
    hall.wait();
    return 0;
  });
}
