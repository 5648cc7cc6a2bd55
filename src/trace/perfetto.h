// Events in the format of Perfetto's traces, which its viewer (ui.perfetto.dev) and its trace processor read: a
// sequence of protocol buffers, each a packet of its own. Times order them, not their places in the file.
//
//   a track for each P         who runs there, and since when on which thread; what was spawned, readied and stolen
//   a track for each goroutine what it does: running, runnable, or what it waits for, in the words of the dumps
//   a track for the world      when it was stopped
//
// Arrows (flows) lead from who spawned or readied a goroutine to where it runs then.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "os/symbols.h"
#include "trace/event.h"
#include "trace/log.h"

namespace weft::trace {

class perfetto_encoder {
 public:
  // Writes the beginning of a trace.
  perfetto_encoder();

  // What one log has to say, in pieces, each in its turn.
  void add(std::int32_t source, std::span<const event> events);
  void add(const chunk& c) { add(c.source, std::span(c.events, c.count)); }

  // What has been written; the caller empties it as it likes, between calls.
  std::string& out() noexcept { return out_; }

 private:
  struct track_event;

  // What the events that follow another say about it.
  struct details {
    std::uint64_t spawned_at = 0;
    std::string name;
  };

  void add(std::int32_t source, const event& e, const details& d);
  void describe_process();
  void describe_processor(std::int32_t p);
  void describe_goroutine(const event& e, const details& d);
  void start(std::int32_t source, const event& e);
  void stop(std::int32_t source, const event& e);
  void ready(std::int32_t source, const event& e);
  void end_run(std::int32_t source, const event& e);
  std::uint64_t label_of(const event& e);
  void describe_track(std::uint64_t track, std::uint64_t parent, std::string_view name);
  // Ends what the goroutine did and begins `state`.
  void change_state(const event& e, std::string_view state);
  void emit(const track_event& t);

  std::uint64_t name_id(std::string_view name);
  const std::string& place_of(std::uint64_t pc);

  std::string out_;
  std::map<std::string, std::uint64_t, std::less<>> names_;
  std::unordered_map<std::uint64_t, std::string> places_;
  std::unordered_map<std::uint64_t, std::uint64_t> named_;   // goroutines that have a name, and its id
  std::unordered_map<std::int32_t, std::uint64_t> running_;  // the goroutine on each P that has a track
  os::symbolizer symbols_;
};

}  // namespace weft::trace
