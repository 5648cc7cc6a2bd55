#include "trace_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace tool {
namespace {

struct ends_early : std::runtime_error {
  ends_early() : std::runtime_error("not a trace, or damaged") {}
};

// The fields of a message, one after the other.
class message {
 public:
  explicit message(std::string_view whole) : rest_(whole) {}

  // False at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = take_varint();
    field = static_cast<std::uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0:
        number = take_varint();
        return true;
      case 1:
        std::memcpy(&number, take(8).data(), 8);
        return true;
      case 2:
        bytes = take(take_varint());
        return true;
      case 5:
        take(4);
        return true;
      default:
        throw std::runtime_error("not a trace, or damaged");
    }
  }

  std::uint32_t field = 0;
  std::uint64_t number = 0;
  std::string_view bytes;

 private:
  std::string_view take(std::uint64_t n) {
    if (n > rest_.size()) throw ends_early();
    const std::string_view part = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return part;
  }
  std::uint64_t take_varint() {
    std::uint64_t n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      n |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return n;
    }
    throw std::runtime_error("not a trace, or damaged");
  }

  std::string_view rest_;
};

void read_names(trace_file& t, std::string_view interned) {
  for (message m(interned); m.next();) {
    if (m.field != 2) continue;
    std::uint64_t id = 0;
    std::string name;
    for (message entry(m.bytes); entry.next();) {
      if (entry.field == 1) id = entry.number;
      if (entry.field == 2) name = entry.bytes;
    }
    t.names[id] = name;
  }
}

void read_track(trace_file& t, std::string_view descriptor) {
  std::uint64_t track = 0;
  std::string name;
  for (message m(descriptor); m.next();) {
    if (m.field == 1) track = m.number;
    if (m.field == 2) name = m.bytes;
  }
  t.tracks[track] = name;
}

void read_event(track_event& e, std::string_view bytes) {
  for (message m(bytes); m.next();) {
    switch (m.field) {
      case 4:
        for (message annotation(m.bytes); annotation.next();) {
          if (annotation.field == 3) e.value = annotation.number;
        }
        break;
      case 9:
        e.type = static_cast<track_event::kind>(m.number);
        break;
      case 10:
        e.name = static_cast<std::uint32_t>(m.number);
        break;
      case 11:
        e.track = m.number;
        break;
      case 47:
        e.flow = m.number;
        break;
      case 48:
        e.ended_flow = m.number;
        break;
      default:
        break;
    }
  }
}

void read_packet(trace_file& t, std::string_view packet) {
  track_event e;
  bool is_event = false;
  for (message m(packet); m.next();) {
    switch (m.field) {
      case 8:
        e.when = m.number;
        break;
      case 11:
        read_event(e, m.bytes);
        is_event = true;
        break;
      case 12:
        read_names(t, m.bytes);
        break;
      case 60:
        read_track(t, m.bytes);
        break;
      default:
        break;
    }
  }
  if (is_event) t.events.push_back(e);
}

// Whoever wrote the file came to his end in the midst of a packet: not within one that has its length, nor before the first.
bool next_packet(trace_file& t, message& file, bool is_first) {
  try {
    return file.next();
  } catch (const ends_early&) {
    if (is_first) throw;
    t.is_cut = true;
    return false;
  }
}

}  // namespace

trace_file trace_file::read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw std::runtime_error("cannot be read");
  if (bytes.empty()) throw std::runtime_error("is empty");
  trace_file t;
  bool is_first = true;
  for (message m(bytes); next_packet(t, m, is_first); is_first = false) {
    if (m.field != 1) throw std::runtime_error("not a trace");
    read_packet(t, m.bytes);
  }
  std::stable_sort(t.events.begin(), t.events.end(),
                   [](const track_event& a, const track_event& b) { return a.when < b.when; });
  return t;
}

}  // namespace tool
