#include "sched/report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/fatal.h"
#include "os/symbols.h"

namespace weft::sched {
namespace {

constexpr std::int64_t minute_ns = 60'000'000'000;
constexpr std::size_t most_in_full = 1000;  // of those with one stack; more of them are counted
constexpr std::size_t most_ids = 50;        // of a group that are named then

using member = census::member;
using os::location;
using os::symbol;

std::string hex(std::uintptr_t n) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, n, 16).ptr;
  return "0x" + std::string(digits, end);
}

// Whether a function's own qualified name, without parameters and template arguments, begins with this.
bool is_in(std::string_view function, std::string_view room) {
  const std::string_view name = function.substr(0, function.find_first_of("(<"));
  const auto at = name.find(room);  // what is in front of it is the result type of a template
  return at == 0 || (at != name.npos && name[at - 1] == ' ');
}

// "weft::net::(anonymous namespace)::...", but not "weft::chan<(anonymous namespace)::...>::recv".
bool is_helper_of_weft(std::string_view function) {
  const auto end_of_name = function.find_first_of("(<");
  return end_of_name != function.npos && is_in(function, "weft::") && function.substr(end_of_name).starts_with("(anonymous namespace)");
}

// What the user calls is shown, whether it is in a header or not: accept() tells more than "IO wait" does.
bool is_weft_inside(const symbol& s) {
  if (s.file.find("weft/detail/") != s.file.npos || is_helper_of_weft(s.function)) return true;
  constexpr std::string_view rooms[] = {"weft::sched::", "weft::detail::", "weft::chans::", "weft::gmp::",    "weft::arch::", "weft::base::",
                                        "weft::os::",    "weft::timers::", "weft::io::",    "weft::poll::", "weft_goroutine_",
                                        "weft_borrower_", "weft::runtime::dump_goroutines"};
  return std::any_of(std::begin(rooms), std::end(rooms), [&](std::string_view room) { return is_in(s.function, room); });
}

// What every goroutine's stack begins with.
bool is_first_of_goroutine(const symbol& s) {
  return is_in(s.function, "weft_goroutine_") || is_in(s.function, "weft_borrower_") || is_in(s.function, "weft::sched::run_body");
}

// What stands between the runtime and the function that was given to go(), and what go() itself is made of.
bool is_plumbing(const symbol& s) {
  constexpr std::string_view starters[] = {"weft/go.h", "weft/run.h", "weft/future.h", "weft/wait_group.h", "weft/group.h"};
  return is_weft_inside(s) || s.file.find("/include/c++/") != s.file.npos || is_in(s.function, "std::") ||
         std::any_of(std::begin(starters), std::end(starters), [&](std::string_view name) { return s.file.ends_with(name); });
}

std::string quoted(std::string_view name) {
  base::text t;
  return std::string(t.quote(name).view());
}

struct line {
  const location* where;
  const symbol* what;
  std::uintptr_t pc;
};

class writer {
 public:
  writer(const census& c, bool only_waiting) : census_(c), only_waiting_(only_waiting) {}

  std::string text() {
    for (const auto& [stack, members] : groups()) write_group(members, stack);
    if (!only_waiting_) {
      for (const census::unborn& u : census_.never_started()) write_unborn(u);
    }
    if (!census_.is_complete()) out_ += "... and others, for which there was no room\n\n";
    return std::move(out_);
  }

 private:
  using group = std::vector<const member*>;
  using shown = std::pair<std::string, group>;  // frames and creator, as text, and who has them

  // Those that differ in nothing that is shown but their number and how long they have waited. Who asked comes first, then
  // running ones, then by number. Addresses first: to compare those of 100,000 goroutines is quick, to name them is not.
  std::vector<shown> groups() {
    using words = std::tuple<bool, status, detail::wait_reason, bool, std::string_view, std::uint64_t, std::uintptr_t, std::vector<std::uintptr_t>>;
    std::map<words, group> by_words;
    for (const member& m : census_.members()) {
      if (only_waiting_ && m.state != status::waiting) continue;
      const auto frames = census_.frames(m);
      by_words[{m.is_caller, m.state, m.reason, m.locked, {m.name, m.name_size}, m.creator, m.creator_pc, {frames.begin(), frames.end()}}].push_back(&m);
    }
    std::map<std::tuple<bool, status, detail::wait_reason, bool, std::string_view, std::string>, group> by_text;
    for (auto& [w, some] : by_words) {
      const member& m = *some.front();
      group& all = by_text[{m.is_caller, m.state, m.reason, m.locked, {m.name, m.name_size}, stack_of(m)}];
      all.insert(all.end(), some.begin(), some.end());
    }
    std::vector<shown> result;
    for (auto& [t, g] : by_text) {
      std::sort(g.begin(), g.end(), [](const member* a, const member* b) { return a->id < b->id; });
      result.emplace_back(std::get<std::string>(t), std::move(g));
    }
    std::sort(result.begin(), result.end(), [](const shown& a, const shown& b) {
      const member &x = *a.second.front(), &y = *b.second.front();
      const auto rank = [](const member& m) { return std::tuple(!m.is_caller, m.state != status::running, m.id); };
      return rank(x) < rank(y);
    });
    return result;
  }

  std::string stack_of(const member& m) {
    std::string before;
    std::swap(before, out_);
    write_frames(m);
    write_creator(m.creator, m.creator_pc);
    std::swap(before, out_);
    return before;
  }

  void write_group(const group& g, const std::string& stack) {
    if (g.size() > most_in_full) {
      write_one(*g.front(), longest_wait(g), stack);
      write_others(g);
      out_ += "\n";
      return;
    }
    for (const member* m : g) {
      write_one(*m, m->waiting_since, stack);
      out_ += "\n";
    }
  }

  void write_one(const member& m, std::int64_t since, const std::string& stack) {
    out_ += "goroutine " + std::to_string(m.id) + " [" + state_of(m, since) + "]";
    if (m.name_size != 0) out_ += " " + quoted({m.name, m.name_size});
    out_ += ":\n" + stack;
  }

  static std::int64_t longest_wait(const group& g) {
    std::int64_t since = g.front()->waiting_since;
    for (const member* m : g) since = std::min(since, m->waiting_since);
    return since;
  }

  std::string state_of(const member& m, std::int64_t since) const {
    std::string text(m.state == status::waiting ? to_string(m.reason) : gmp::to_string(m.state));
    if (text.empty()) text = "waiting";
    if (m.state == status::waiting || m.state == status::syscall) {
      const std::int64_t minutes = since == 0 ? 0 : (census_.taken_at() - since) / minute_ns;
      if (minutes >= 1) text += ", " + std::to_string(minutes) + " minutes";
    }
    if (m.locked) text += ", locked to thread";
    return text;
  }

  void write_frames(const member& m) {
    std::vector<line> lines;
    for (const std::uintptr_t pc : census_.frames(m)) {
      const location& where = symbols_.at(pc);
      for (const symbol& s : where.symbols) lines.push_back({&where, &s, pc});
    }
    if (lines.empty()) {
      out_ += m.state == status::running ? "\tgoroutine running on other thread; stack unavailable\n" : "\tstack unavailable\n";
    }
    const auto [first, last] = of_interest(lines);
    for (std::size_t i = first; i < last; ++i) write_line(lines[i]);
    if (m.frames == census::max_frames) out_ += "...additional frames elided...\n";
  }

  // Without the runtime's own frames at both ends. If that leaves nothing, the program's own function is gone: its last call
  // took its place on the stack (a tail call), and is shown instead.
  static std::pair<std::size_t, std::size_t> of_interest(const std::vector<line>& lines) {
    std::size_t first = 0, last = lines.size();
    while (first < last && is_weft_inside(*lines[first].what)) ++first;
    while (first < last && is_plumbing(*lines[last - 1].what)) --last;
    if (first < last || lines.empty()) return {first, last};
    last = lines.size();
    while (last > 1 && is_first_of_goroutine(*lines[last - 1].what)) --last;
    return {last - 1, last};
  }

  void write_line(const line& l) {
    out_ += l.what->function.empty() ? hex(l.pc) : l.what->function;
    out_ += "\n\t" + place_of(l) + "\n";
  }

  static std::string place_of(const line& l) {
    std::string text;
    if (!l.what->file.empty()) {
      text = l.what->file + ":" + std::to_string(l.what->line);
    } else {
      text = (l.where->module.empty() ? "?" : l.where->module) + "+" + hex(l.where->in_module);
    }
    if (l.what->in_function != 0 && !l.what->file.empty()) text += " +" + hex(l.what->in_function);
    return text;
  }

  void write_creator(std::uint64_t creator, std::uintptr_t pc) {
    if (pc == 0) return;
    const location& where = symbols_.at(pc - 1);
    // What is inlined into the caller of go() is not who called it.
    std::size_t i = 0;
    while (i + 1 < where.symbols.size() && is_plumbing(where.symbols[i])) ++i;
    const symbol& s = where.symbols[i];
    if (creator == 0 && is_weft_inside(s)) return;  // the main goroutine, or a timer's
    out_ += "created by " + (s.function.empty() ? hex(pc - 1) : s.function);
    if (creator != 0) out_ += " in goroutine " + std::to_string(creator);
    out_ += "\n\t" + place_of({&where, &s, pc - 1}) + "\n";
  }

  void write_others(const group& g) {
    out_ += "... and " + std::to_string(g.size() - 1) + " more with the same stack:";
    for (std::size_t i = 1; i < std::min(g.size(), most_ids); ++i) out_ += " " + std::to_string(g[i]->id);
    out_ += g.size() > most_ids ? " ...\n" : "\n";
  }

  void write_unborn(const census::unborn& u) {
    out_ += std::to_string(u.count) + (u.count == 1 ? " goroutine" : " goroutines") + " [runnable] not yet started:\n";
    write_creator(u.creator, u.creator_pc);
    out_ += "\n";
  }

  const census& census_;
  const bool only_waiting_;
  os::symbolizer symbols_;
  std::string out_;
};

}  // namespace

std::string report(const census& c, bool only_waiting) { return writer(c, only_waiting).text(); }

void report_to_stderr() {
  census c;
  c.take();
  print_to_stderr(report(c));
}

void print_to_stderr(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(STDERR_FILENO, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

}  // namespace weft::sched
