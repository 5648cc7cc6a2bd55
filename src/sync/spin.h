// Whether it pays to spin for a moment before parking, as for Go's mutex.
#pragma once

#include "base/pause.h"

namespace weft::detail {

inline constexpr int spin_rounds = 4;
inline constexpr int pauses_per_round = 30;
inline constexpr int glances = 20;

// Another P runs something (which may be the holder), and on this P nobody else waits for his turn. On a plain thread:
// there is more than one CPU.
bool spinning_may_help() noexcept;

void spin_one_round() noexcept;

// Another P runs something (which may be the holder). On a plain thread: there is more than one CPU.
bool others_run() noexcept;

// Waits, though others may want this P, for what is usually over before one could park and come back: until done(), or
// as long as there is hope(). False: it was not done.
template <class Done, class Hope>
bool glance(Done done, Hope hope) noexcept {
  if (!others_run()) return false;
  for (int i = 0; i < glances && hope(); ++i) {
    if (done()) return true;
    base::cpu_pause();
  }
  return false;
}

}  // namespace weft::detail
