// Errors of weft's own. Each compares equal to the std::errc that means the same.
#pragma once

#include <system_error>
#include <type_traits>

namespace weft {

enum class errc {
  canceled = 1,       // std::errc::operation_canceled
  deadline_exceeded,  // std::errc::timed_out
};

const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(errc e) noexcept { return {static_cast<int>(e), error_category()}; }

}  // namespace weft

template <>
struct std::is_error_code_enum<weft::errc> : std::true_type {};
