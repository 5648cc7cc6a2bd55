// A trace that weft wrote, read back: the packets of Perfetto's format, as far as weft writes them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace tool {

struct track_event {
  enum kind : std::uint8_t { begin = 1, end = 2, instant = 3 };

  std::uint64_t when = 0;
  std::uint64_t track = 0;
  std::uint64_t flow = 0, ended_flow = 0;  // 0: none
  std::uint64_t value = 0;                 // of its one annotation
  std::uint32_t name = 0;                  // index into trace_file::names
  kind type = begin;
};

struct trace_file {
  std::vector<track_event> events;  // by time
  std::unordered_map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::string> tracks;
  bool is_cut = false;  // it ends in the midst of a packet

  static bool is_goroutine(std::uint64_t track) { return track >= std::uint64_t{1} << 32; }
  bool is_processor(std::uint64_t track) const { return title_of(track).starts_with("P "); }

  // "?" for what nobody has described.
  const std::string& title_of(std::uint64_t track) const { return found_or_unknown(tracks, track); }
  const std::string& name_of(std::uint32_t id) const { return found_or_unknown(names, id); }

  // Throws std::runtime_error: it cannot be read, or is not a trace.
  static trace_file read(const std::string& path);

 private:
  template <class Map>
  static const std::string& found_or_unknown(const Map& map, std::uint64_t key) {
    static const std::string unknown = "?";
    const auto at = map.find(key);
    return at == map.end() ? unknown : at->second;
  }
};

}  // namespace tool
