// An HTTP/1.1 server: Boost.Beast reads requests and writes responses, over weft's sockets.
//
//   http_server                   on 127.0.0.1:8080, until SIGTERM or Ctrl-C; try `curl -v http://127.0.0.1:8080/hello/you`
//   http_server 127.0.0.1:8081    elsewhere
//
// Beast's synchronous functions want a stream with read_some and write_some; that is all the glue there is. What looks
// like one blocked thread a connection is one parked goroutine.
#include <weft/weft.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "end_signals.h"
#include "usage.h"

namespace net = weft::net;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

namespace {

constexpr const char* usage = "usage: http_server [ADDRESS]  serves until SIGTERM or Ctrl-C; on 127.0.0.1:8080 unless told\n";

// A weft connection as Beast's SyncReadStream and SyncWriteStream.
class stream {
 public:
  explicit stream(net::conn c) : connection_(std::move(c)) {}

  net::conn& connection() { return connection_; }

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, boost::system::error_code& ec) {
    const boost::asio::mutable_buffer b = *boost::asio::buffer_sequence_begin(buffers);
    std::error_code error;
    const std::size_t n = connection_.read({b.data(), b.size()}, error);
    ec = convert(error);
    if (!ec && n == 0 && b.size() != 0) ec = boost::asio::error::eof;
    return n;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, boost::system::error_code& ec) {
    std::vector<weft::const_buffer> parts;
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != boost::asio::buffer_sequence_end(buffers); ++at) {
      const boost::asio::const_buffer b = *at;
      parts.emplace_back(b.data(), b.size());
    }
    std::error_code error;
    const std::size_t n = connection_.writev(parts, error);
    ec = convert(error);
    return n;
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    boost::system::error_code ec;
    const std::size_t n = read_some(buffers, ec);
    if (ec) throw boost::system::system_error(ec);
    return n;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    boost::system::error_code ec;
    const std::size_t n = write_some(buffers, ec);
    if (ec) throw boost::system::system_error(ec);
    return n;
  }

 private:
  static boost::system::error_code convert(const std::error_code& ec) {
    return {ec.value(), boost::system::system_category()};
  }

  net::conn connection_;
};

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

response answer(const request& r) {
  response a(http::status::ok, r.version());
  a.set(http::field::server, "weft");
  a.set(http::field::content_type, "text/plain");
  a.keep_alive(r.keep_alive());
  const std::string_view target(r.target().data(), r.target().size());
  const bool reads = r.method() == http::verb::get || r.method() == http::verb::head;
  if (r.method() == http::verb::post && target == "/echo") {
    a.body() = r.body();
  } else if (reads && target.starts_with("/hello/")) {
    a.body() = "Hello, " + std::string(target.substr(7)) + "!\n";
  } else if (reads && target == "/") {
    a.body() = "Hello, world!";
  } else {
    a.result(http::status::not_found);
    a.body() = "There is no such thing here.\n";
  }
  a.prepare_payload();
  if (r.method() == http::verb::head) a.body().clear();
  return a;
}

// Whether it is what the client sent that is wrong, and not that it has gone.
bool is_bad_request(const boost::system::error_code& ec) {
  return ec.category() == make_error_code(http::error::bad_method).category() && ec != http::error::end_of_stream;
}

// After a request that cannot be understood nobody knows where the next one would begin, so there is none.
void refuse(stream& s) {
  response a(http::status::bad_request, 11);
  a.set(http::field::server, "weft");
  a.set(http::field::content_type, "text/plain");
  a.keep_alive(false);
  a.body() = "This is no request that I understand.\n";
  a.prepare_payload();
  boost::system::error_code ec;
  http::write(s, a, ec);
  // What is still coming is read until the client ends or its time is over: to close before would reset the connection, and the
  // answer might be lost with it.
  std::error_code ignored;
  s.connection().shutdown_write(ignored);
  std::array<char, 4096> rest;
  while (s.connection().read(rest, ignored) > 0) {
  }
}

void serve(net::conn c) {
  stream s(std::move(c));
  boost::beast::flat_buffer buffer;
  for (bool more = true; more;) {
    boost::system::error_code ec;
    request r;
    s.connection().set_deadline(std::chrono::steady_clock::now() + 30s);  // for a whole request and its answer
    http::read(s, buffer, r, ec);
    if (is_bad_request(ec)) return refuse(s);
    if (ec) return;  // the end of the stream, or a client that went away or said nothing
    response a = answer(r);
    http::serializer<false, http::string_body> serializer(a);
    if (r.method() == http::verb::head) {
      http::write_header(s, serializer, ec);
    } else {
      http::write(s, serializer, ec);
    }
    if (ec) return;
    more = r.keep_alive();
  }
  std::error_code ignored;
  s.connection().shutdown_write(ignored);
}

// Until the listener is closed.
void accept_all(net::listener& listener) {
  std::error_code ec;
  for (;;) {
    net::conn c = listener.accept(ec);
    if (ec) return;
    weft::go([c = std::move(c)]() mutable { serve(std::move(c)); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (example::asked_for_help(argc, argv, usage)) return 0;
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) return example::misunderstood(usage);
  const example::end_signals end;  // before run() starts threads
  return example::run("http_server", [&] { example::serve_until(end, argc == 2 ? argv[1] : "127.0.0.1:8080", accept_all); });
}
