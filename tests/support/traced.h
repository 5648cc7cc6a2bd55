// Traces that were read back: what holds of every one, and what to ask them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "trace_file.h"

namespace test {

inline bool has_losses(const tool::trace_file& t) {
  for (const tool::track_event& e : t.events) {
    if (e.type == tool::track_event::instant && t.names.at(e.name) == "events lost") return true;
  }
  return false;
}

// On each track at most one slice is open, and who runs on a P is `running`, there and nowhere else. Of a trace that
// has lost nothing.
inline void expect_consistent(const tool::trace_file& t) {
  std::map<std::uint64_t, std::string> open;            // by track
  std::map<std::uint64_t, std::uint64_t> goroutine_of;  // by the P's track
  std::set<std::uint64_t> placed;                       // goroutines that are on a P
  for (const tool::track_event& e : t.events) {
    if (e.type == tool::track_event::instant) continue;
    ASSERT_TRUE(t.tracks.contains(e.track)) << "a track without a description";
    if (e.type == tool::track_event::begin) {
      ASSERT_TRUE(open.try_emplace(e.track, t.names.at(e.name)).second)
          << t.tracks.at(e.track) << " is " << open[e.track] << " still, when it begins to be " << t.names.at(e.name);
      if (t.is_processor(e.track)) {
        ASSERT_TRUE(placed.insert(e.value).second) << "goroutine " << e.value << " runs on two Ps";
        goroutine_of[e.track] = e.value;
      }
    } else {
      ASSERT_EQ(open.erase(e.track), 1u) << t.tracks.at(e.track) << " ends what it did not begin";
      if (t.is_processor(e.track)) placed.erase(goroutine_of[e.track]);
    }
  }
}

// What goroutines of this name, or spawned in a function of this name, were seen to do.
inline std::set<std::string> states_of(const tool::trace_file& t, const std::string& name) {
  std::set<std::string> states;
  for (const tool::track_event& e : t.events) {
    if (tool::trace_file::is_goroutine(e.track) && e.type == tool::track_event::begin &&
        t.tracks.at(e.track).find(name) != std::string::npos) {
      states.insert(t.names.at(e.name));
    }
  }
  return states;
}

inline std::size_t count(const tool::trace_file& t, const std::string& name) {
  std::size_t n = 0;
  for (const tool::track_event& e : t.events) n += e.name != 0 && t.names.at(e.name) == name;
  return n;
}

}  // namespace test
