// Reporting an error number in the two ways that the public calls have.
#pragma once

#include <system_error>

namespace weft::io {

inline void set(std::error_code& ec, int error) noexcept {
  if (error == 0) {
    ec.clear();
  } else {
    ec.assign(error, std::system_category());
  }
}

inline void throw_if(const std::error_code& ec, const char* what) {
  if (ec) throw std::system_error(ec, what);
}

}  // namespace weft::io
