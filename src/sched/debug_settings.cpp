#include "sched/debug_settings.h"

#include <cstdlib>
#include <string_view>

#include "base/fatal.h"
#include "sched/stack.h"

namespace weft::sched {
namespace {

bool apply(std::string_view name, std::string_view value) noexcept {
  if (name == "guard" && value == "mprotect") {
    force_mprotect_guards();
    return true;
  }
  return false;
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
