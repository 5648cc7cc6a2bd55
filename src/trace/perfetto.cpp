#include "trace/perfetto.h"

#include <unistd.h>
#include <weft/detail/wait_reason.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace weft::trace {
namespace {

// ---- protocol buffers, as far as they are needed -------------------------------------------------------------------

void put_varint(std::string& out, std::uint64_t n) {
  while (n >= 0x80) {
    out.push_back(static_cast<char>(n | 0x80));
    n >>= 7;
  }
  out.push_back(static_cast<char>(n));
}

enum wire : std::uint32_t { varint = 0, fixed64 = 1, length_delimited = 2 };

void put_number(std::string& out, std::uint32_t field, std::uint64_t n) {
  put_varint(out, field << 3 | wire::varint);
  put_varint(out, n);
}

void put_fixed64(std::string& out, std::uint32_t field, std::uint64_t n) {
  put_varint(out, field << 3 | wire::fixed64);
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(n >> (8 * i)));
}

constexpr std::size_t longest_text = 1024;

void put_text(std::string& out, std::uint32_t field, std::string_view text) {
  text = text.substr(0, longest_text);
  put_varint(out, field << 3 | wire::length_delimited);
  put_varint(out, text.size());
  out += text;
}

// A message within another, written in place. Its length, which is known at the end only, always takes two bytes: a
// varint may be longer than it needs to be.
class message {
 public:
  message(std::string& out, std::uint32_t field) : out_(out) {
    put_varint(out, field << 3 | wire::length_delimited);
    begin_ = out.size();
    out.append(2, '\0');
  }
  ~message() {
    const std::size_t length = out_.size() - begin_ - 2;
    out_[begin_] = static_cast<char>(length | 0x80);
    out_[begin_ + 1] = static_cast<char>(length >> 7);
  }
  message(const message&) = delete;
  message& operator=(const message&) = delete;

 private:
  std::string& out_;
  std::size_t begin_;
};

// ---- the fields of Perfetto's messages -----------------------------------------------------------------------------

namespace trace_fields {
constexpr std::uint32_t packet = 1;
}
namespace packet_fields {
constexpr std::uint32_t timestamp = 8, sequence = 10, track_event = 11, interned_data = 12, flags = 13,
                        track_descriptor = 60;
}
namespace event_fields {
constexpr std::uint32_t annotations = 4, type = 9, name_id = 10, track = 11, flows = 47, ended_flows = 48;
}
namespace annotation_fields {
constexpr std::uint32_t number = 3, name = 10;
}
namespace interned_fields {
constexpr std::uint32_t event_names = 2;
}
namespace name_fields {
constexpr std::uint32_t id = 1, name = 2;
}
namespace descriptor_fields {
constexpr std::uint32_t track = 1, name = 2, process = 3, parent = 5;
}
namespace process_fields {
constexpr std::uint32_t pid = 1, name = 6;
}

enum : std::uint64_t { slice_begin = 1, slice_end = 2, instant = 3 };
enum : std::uint64_t { state_cleared = 1, needs_state = 2 };

constexpr std::uint64_t only_sequence = 1;

constexpr std::uint64_t process_track = 1, goroutines_track = 2, world_track = 3, first_processor_track = 16;
constexpr std::uint64_t first_goroutine_track = std::uint64_t{1} << 32;

std::uint64_t track_of_processor(std::int32_t p) { return first_processor_track + static_cast<std::uint64_t>(p + 1); }
std::uint64_t track_of_goroutine(std::uint64_t id) { return first_goroutine_track + id; }

// Flows: from readying to running, by goroutine; from spawning to running, by record.
std::uint64_t flow_to_goroutine(std::uint64_t id) { return id << 1; }
std::uint64_t flow_to_record(std::uint64_t record) { return record | 1; }

std::string process_name() {
  char name[64] = {};
  if (std::FILE* f = std::fopen("/proc/self/comm", "re")) {
    if (std::fgets(name, sizeof name, f) == nullptr) name[0] = '\0';
    std::fclose(f);
  }
  std::string text(name);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string_view state_after(const event& e) {
  switch (e.why) {
    case why::waiting: {
      const auto reason = detail::to_string(static_cast<detail::wait_reason>(e.reason));
      return reason.empty() ? "waiting" : reason;
    }
    case why::runnable:
      return "runnable";
    case why::in_call:
      return "syscall";
    case why::preempted:
      return "preempted";
    case why::ended:
      break;
  }
  return "";
}

bool is_of_weft_or_std(const os::symbol& s) {
  return s.file.find("/include/weft/") != s.file.npos || s.file.find("/include/c++/") != s.file.npos ||
         s.function.starts_with("weft::");
}

std::string_view without_folders(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Where the parameters of a function begin: those of the functions that it lies in, as lambdas do, stand in front of them.
std::size_t begin_of_parameters(std::string_view function) {
  std::size_t at = function.rfind(')');
  for (int depth = 0; at != function.npos && at != 0; --at) {
    if (function[at] == ')') ++depth;
    if (function[at] == '(' && --depth == 0) return at;
  }
  return function.npos;
}

// "serve" of "serve(int)", "main::{lambda()#1}" of "main::{lambda()#1}::operator()() const", and what is no function as it is.
std::string_view without_parameters(std::string_view function) {
  constexpr std::string_view call = "::operator()";
  const std::size_t end = begin_of_parameters(function);
  if (end != 0) function = function.substr(0, end);
  if (function.ends_with("::operator")) return function.substr(0, function.size() - std::string_view("::operator").size());
  return function.ends_with(call) ? function.substr(0, function.size() - call.size()) : function;
}

// What weft itself spawns: the main goroutine, and those in which timers call their functions.
std::string_view inside_weft(std::string_view spawner) {
  if (!spawner.starts_with("weft::")) return "goroutine";
  return spawner.find("main") != spawner.npos ? "main" : "timer";
}

void append_name(std::string& name, const event& piece) {
  char text[16];
  std::memcpy(text, &piece.a, 8);
  std::memcpy(text + 8, &piece.b, 8);
  name.append(text, sizeof text);
  if (name.size() > piece.number) name.resize(piece.number);
}

}  // namespace

struct perfetto_encoder::track_event {
  std::int64_t when;
  std::uint64_t type;
  std::uint64_t track;
  std::uint64_t name_id = 0;
  std::uint64_t flow = 0;        // begins here
  std::uint64_t ended_flow = 0;  // ends here
  const char* argument = nullptr;
  std::uint64_t value = 0;
};

perfetto_encoder::perfetto_encoder() {
  {
    // The one sequence of this file begins: what is interned is known from here on.
    const message packet(out_, trace_fields::packet);
    put_number(out_, packet_fields::sequence, only_sequence);
    put_number(out_, packet_fields::flags, state_cleared);
  }
  describe_process();
  describe_track(goroutines_track, process_track, "goroutines");
  describe_track(world_track, process_track, "world");
}

void perfetto_encoder::describe_process() {
  const message packet(out_, trace_fields::packet);
  put_number(out_, packet_fields::sequence, only_sequence);
  const message descriptor(out_, packet_fields::track_descriptor);
  put_number(out_, descriptor_fields::track, process_track);
  const message process(out_, descriptor_fields::process);
  put_number(out_, process_fields::pid, static_cast<std::uint64_t>(::getpid()));
  put_text(out_, process_fields::name, process_name());
}

void perfetto_encoder::describe_track(std::uint64_t track, std::uint64_t parent, std::string_view name) {
  const message packet(out_, trace_fields::packet);
  put_number(out_, packet_fields::sequence, only_sequence);
  const message descriptor(out_, packet_fields::track_descriptor);
  put_number(out_, descriptor_fields::track, track);
  put_number(out_, descriptor_fields::parent, parent);
  put_text(out_, descriptor_fields::name, name);
}

// Once a name.
std::uint64_t perfetto_encoder::name_id(std::string_view name) {
  if (const auto at = names_.find(name); at != names_.end()) return at->second;
  const std::uint64_t id = names_.emplace(name, names_.size() + 1).first->second;
  const message packet(out_, trace_fields::packet);
  put_number(out_, packet_fields::sequence, only_sequence);
  const message interned(out_, packet_fields::interned_data);
  const message entry(out_, interned_fields::event_names);
  put_number(out_, name_fields::id, id);
  put_text(out_, name_fields::name, name);
  return id;
}

// Where a goroutine was spawned: function, file and line, without what is in headers of weft's.
const std::string& perfetto_encoder::place_of(std::uint64_t pc) {
  const auto [at, is_new] = places_.try_emplace(pc);
  if (!is_new) return at->second;
  const os::location& where = symbols_.at(pc - 1);
  for (const os::symbol& s : where.symbols) {
    if (s.function.empty() || is_of_weft_or_std(s)) continue;
    at->second = without_parameters(s.function);
    if (!s.file.empty()) (((at->second += " (") += without_folders(s.file)) += ":" + std::to_string(s.line)) += ")";
    return at->second;
  }
  return at->second = inside_weft(where.symbols.back().function);
}

void perfetto_encoder::emit(const track_event& t) {
  const message packet(out_, trace_fields::packet);
  put_number(out_, packet_fields::timestamp, static_cast<std::uint64_t>(t.when));
  put_number(out_, packet_fields::sequence, only_sequence);
  put_number(out_, packet_fields::flags, needs_state);
  const message event(out_, packet_fields::track_event);
  put_number(out_, event_fields::type, t.type);
  put_number(out_, event_fields::track, t.track);
  if (t.name_id != 0) put_number(out_, event_fields::name_id, t.name_id);
  if (t.flow != 0) put_fixed64(out_, event_fields::flows, t.flow);
  if (t.ended_flow != 0) put_fixed64(out_, event_fields::ended_flows, t.ended_flow);
  if (t.argument == nullptr) return;
  const message annotation(out_, event_fields::annotations);
  put_text(out_, annotation_fields::name, t.argument);
  put_number(out_, annotation_fields::number, t.value);
}

void perfetto_encoder::add(std::int32_t source, std::span<const event> events) {
  for_each_group(events, [&](group g) {
    details d;
    for (const event& piece : g.subspan(1)) {
      if (piece.kind == kind::origin) {
        d.spawned_at = piece.b;
      } else {
        append_name(d.name, piece);
      }
    }
    add(source, g.front(), d);
  });
}

void perfetto_encoder::describe_processor(std::int32_t p) {
  if (!running_.try_emplace(p, 0).second) return;
  describe_track(track_of_processor(p), process_track, p == outside ? "plain threads" : "P " + std::to_string(p));
}

void perfetto_encoder::describe_goroutine(const event& e, const details& d) {
  std::string title = "goroutine " + std::to_string(e.a);
  if (!d.name.empty()) {
    title += " \"" + d.name + "\"";
    named_[e.a] = name_id(d.name);
  }
  if (d.spawned_at != 0) title += " " + place_of(d.spawned_at);
  describe_track(track_of_goroutine(e.a), goroutines_track, title);
  const auto state = name_id(e.kind == kind::born ? "runnable" : state_after(e));
  emit({.when = e.when, .type = slice_begin, .track = track_of_goroutine(e.a), .name_id = state});
}

void perfetto_encoder::change_state(const event& e, std::string_view state) {
  const std::uint64_t track = track_of_goroutine(e.a);
  emit({.when = e.when, .type = slice_end, .track = track});
  if (!state.empty()) emit({.when = e.when, .type = slice_begin, .track = track, .name_id = name_id(state)});
}

// Who runs on the P does not any more.
void perfetto_encoder::end_run(std::int32_t source, const event& e) {
  if (std::exchange(running_[source], 0) != 0)
    emit({.when = e.when, .type = slice_end, .track = track_of_processor(source)});
}

// By its name, if that is known already: it was born on another P, maybe, whose log comes later.
std::uint64_t perfetto_encoder::label_of(const event& e) {
  const auto named = named_.find(e.a);
  if (named != named_.end()) return named->second;
  return name_id(e.b != 0 ? std::string_view(place_of(e.b)) : "goroutine");
}

void perfetto_encoder::start(std::int32_t source, const event& e) {
  end_run(source, e);
  running_[source] = e.a;
  const std::uint64_t label = label_of(e);
  emit({.when = e.when,
        .type = slice_begin,
        .track = track_of_processor(source),
        .name_id = label,
        .ended_flow = flow_to_goroutine(e.a),
        .argument = "goroutine",
        .value = e.a});
  change_state(e, "running");
}

void perfetto_encoder::stop(std::int32_t source, const event& e) {
  end_run(source, e);
  change_state(e, state_after(e));
}

void perfetto_encoder::ready(std::int32_t source, const event& e) {
  emit({.when = e.when,
        .type = instant,
        .track = track_of_processor(source),
        .name_id = name_id("ready"),
        .flow = flow_to_goroutine(e.a),
        .argument = "goroutine",
        .value = e.a});
  change_state(e, "runnable");
}

void perfetto_encoder::add(std::int32_t source, const event& e, const details& d) {
  describe_processor(source);
  const auto note = [&](std::string_view what, const char* argument, std::uint64_t value) {
    emit({.when = e.when,
          .type = instant,
          .track = track_of_processor(source),
          .name_id = name_id(what),
          .argument = argument,
          .value = value});
  };
  switch (e.kind) {
    case kind::started:
      return start(source, e);
    case kind::stopped:
      return stop(source, e);
    case kind::born:
      emit({.when = e.when,
            .type = instant,
            .track = track_of_processor(source),
            .name_id = name_id("begin"),
            .ended_flow = flow_to_record(e.b),
            .argument = "goroutine",
            .value = e.a});
      return describe_goroutine(e, d);
    case kind::found:
      return describe_goroutine(e, d);
    case kind::spawned:
      return emit({.when = e.when,
                   .type = instant,
                   .track = track_of_processor(source),
                   .name_id = name_id("spawn"),
                   .flow = flow_to_record(e.b)});
    case kind::readied:
      return ready(source, e);
    case kind::stole:
      return note("steal " + std::to_string(e.number), "from P", e.a);
    case kind::on_thread:
      return note("on thread", "thread", e.number);
    case kind::world_stops:
      return emit({.when = e.when, .type = slice_begin, .track = world_track, .name_id = name_id("stopped")});
    case kind::world_goes:
      return emit({.when = e.when, .type = slice_end, .track = world_track});
    case kind::lost:
      end_run(source, e);
      return note("events lost", "events", e.a);
    case kind::origin:
    case kind::name:
      return;  // of an event that was lost
  }
}

}  // namespace weft::trace
