// As much of HTTP/1.1 as the workload http_hello needs: where a request ends, and what the answer is.
#pragma once

#include <cstddef>
#include <string_view>

namespace bench {

inline constexpr std::string_view http_answer =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world!";

// The length of the first request in the text, with its empty line; 0: it is not all there. Requests have no body here.
inline std::size_t http_request_size(std::string_view text) {
  if (!text.starts_with("GET ")) return 0;
  const std::size_t end = text.find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

}  // namespace bench
