#include <weft/errc.h>

#include <string>

namespace weft {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weft"; }
  std::string message(int code) const override {
    switch (static_cast<errc>(code)) {
      case errc::canceled: return "context canceled";
      case errc::deadline_exceeded: return "context deadline exceeded";
    }
    return "unknown error";
  }
  std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<errc>(code)) {
      case errc::canceled: return std::errc::operation_canceled;
      case errc::deadline_exceeded: return std::errc::timed_out;
    }
    return {code, *this};
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace weft
