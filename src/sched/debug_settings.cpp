#include "sched/debug_settings.h"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "base/fatal.h"
#include "sched/preempt.h"
#include "sched/stack.h"

namespace weft::sched {

constinit debug_settings debug;

namespace {

bool parse_number(std::string_view text, std::int64_t least, std::int64_t most, std::int64_t& out) noexcept {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < least || n > most) return false;
  out = n;
  return true;
}

bool parse_ms(std::string_view text, std::int64_t& ns) noexcept {
  std::int64_t ms = 0;
  if (!parse_number(text, 1, 1'000'000, ms)) return false;
  ns = ms * 1'000'000;
  return true;
}

bool parse_flag(std::string_view text, bool& out) noexcept {
  if (text != "0" && text != "1") return false;
  out = text == "1";
  return true;
}

// A signal that can be caught, that nobody but who wants it gets, and that weft does not use for anything else. Those below
// SIGRTMIN that have no name are libc's own.
bool may_preempt_with(std::int64_t signal) noexcept {
  for (const int not_this : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGQUIT}) {
    if (signal == not_this) return false;
  }
  return signal < 32 || signal >= SIGRTMIN;
}

// One entry a setting. False: the value makes no sense.
struct setting {
  std::string_view name;
  std::string_view values;
  bool (*apply)(std::string_view value) noexcept;
};

constexpr setting settings[] = {
    {"guard", "mprotect",
     [](std::string_view v) noexcept {
       if (v == "mprotect") force_mprotect_guards();
       return v == "mprotect";
     }},
    {"schedtrace", "milliseconds, from 0 to 86400000",
     [](std::string_view v) noexcept { return parse_number(v, 0, 86'400'000, debug.schedtrace_ms); }},
    {"scheddetail", "0 or 1", [](std::string_view v) noexcept { return parse_flag(v, debug.scheddetail); }},
    {"asyncpreemptoff", "0 or 1", [](std::string_view v) noexcept { return parse_flag(v, preemption.off); }},
    {"slice", "milliseconds, from 1 to 1000000", [](std::string_view v) noexcept { return parse_ms(v, preemption.slice_ns); }},
    {"dueslice", "milliseconds, from 1 to 1000000", [](std::string_view v) noexcept { return parse_ms(v, preemption.due_slice_ns); }},
    {"preemptsignal", "the number of a signal that can be caught and has no other use",
     [](std::string_view v) noexcept {
       std::int64_t n = 0;
       if (!parse_number(v, 1, SIGRTMAX, n) || !may_preempt_with(n)) return false;
       preemption.signal = static_cast<int>(n);
       return true;
     }},
    {"leaks", "0 or 1", [](std::string_view v) noexcept { return parse_flag(v, debug.leaks); }},
};

void read_one(std::string_view text) noexcept {
  const auto equals = text.find('=');
  base::text warning;
  (warning << "weft: WEFTDEBUG: ").quote(text) << " ";
  for (const setting& s : settings) {
    if (s.name != text.substr(0, equals)) continue;
    if (equals != text.npos && s.apply(text.substr(equals + 1))) return;
    return (warning << "is ignored: the value of " << s.name << " is " << s.values << "\n").print();
  }
  (warning << "is not a setting of this version; ignored\n").print();
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
