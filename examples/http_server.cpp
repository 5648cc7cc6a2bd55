// An HTTP/1.1 server: Boost.Beast reads requests and writes responses, over weft's sockets.
//
//   http_server 127.0.0.1:8080    serves until it is killed; try it with `curl -v http://127.0.0.1:8080/hello/you`
//   http_server --for-test        prints its address, serves, and ends when its standard input does
//
// Beast's synchronous functions want a stream with read_some and write_some; that is all the glue there is. What looks
// like one blocked thread a connection is one parked goroutine.
#include <weft/weft.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace net = weft::net;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

namespace {

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
  if (r.method() == http::verb::post && target == "/echo") {
    a.body() = r.body();
  } else if ((r.method() == http::verb::get || r.method() == http::verb::head) && target.starts_with("/hello/")) {
    a.body() = "Hello, " + std::string(target.substr(7)) + "!\n";
  } else if (r.method() == http::verb::get && target == "/") {
    a.body() = "Hello, world!";
  } else {
    a.result(http::status::not_found);
    a.body() = "There is no such thing here.\n";
  }
  a.prepare_payload();
  if (r.method() == http::verb::head) a.body().clear();
  return a;
}

void serve(net::conn c) {
  stream s(std::move(c));
  boost::beast::flat_buffer buffer;
  for (bool more = true; more;) {
    boost::system::error_code ec;
    request r;
    s.connection().set_deadline(std::chrono::steady_clock::now() + 30s);  // for a whole request and its answer
    http::read(s, buffer, r, ec);
    if (ec) return;  // the end of the stream, a client that went away or said nothing, or no HTTP
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
  const std::string_view where = argc > 1 ? argv[1] : "127.0.0.1:8080";
  const bool for_test = where == "--for-test";
  return weft::run([&] {
    net::listener listener = net::listen_tcp(for_test ? "127.0.0.1:0" : where);
    std::printf("%s\n", listener.local_address().to_string().c_str());
    std::fflush(stdout);
    if (!for_test) return accept_all(listener);
    weft::wait_group server;
    server.go([&] { accept_all(listener); });
    weft::blocking([] {
      for (char byte; ::read(0, &byte, 1) > 0;) {
      }
    });
    listener.close();
    server.wait();
  });
}
