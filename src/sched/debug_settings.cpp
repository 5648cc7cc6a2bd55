#include "sched/debug_settings.h"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "base/fatal.h"
#include "sched/preempt.h"
#include "sched/stack.h"

namespace weft::sched {
namespace {

bool parse(std::string_view text, std::int64_t& number) noexcept {
  constexpr std::int64_t largest = 1'000'000'000;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= largest;
}

bool apply(std::string_view name, std::string_view value) noexcept {
  if (name == "guard" && value == "mprotect") {
    force_mprotect_guards();
    return true;
  }
  std::int64_t number = 0;
  if (!parse(value, number)) return false;
  if (name == "asyncpreemptoff" && number <= 1) {
    preemption.off = number == 1;
  } else if (name == "slice" && number > 0) {
    preemption.slice_ns = number * 1'000'000;
  } else if (name == "dueslice" && number > 0) {
    preemption.due_slice_ns = number * 1'000'000;
  } else if (name == "preemptsignal" && number > 0 && number <= SIGRTMAX) {
    preemption.signal = static_cast<int>(number);
  } else {
    return false;
  }
  return true;
}

void read_one(std::string_view setting) noexcept {
  const auto equals = setting.find('=');
  if (equals != setting.npos && apply(setting.substr(0, equals), setting.substr(equals + 1))) return;
  base::text t;
  (t << "weft: WEFTDEBUG: \"" << setting << "\" is not a setting of this version; ignored\n").print();
}

}  // namespace

void read_debug_settings() noexcept {
  const char* text = std::getenv("WEFTDEBUG");
  if (text == nullptr) return;
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = rest.find(',');
    if (comma != 0) read_one(rest.substr(0, comma));
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
}

}  // namespace weft::sched
