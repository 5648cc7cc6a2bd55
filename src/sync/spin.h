// Whether it pays to spin for a moment before parking, as for Go's mutex.
#pragma once

namespace weft::detail {

inline constexpr int spin_rounds = 4;
inline constexpr int pauses_per_round = 30;

// Another P runs something (which may be the holder), and on this P nobody else waits for his turn. On a plain thread:
// there is more than one CPU.
bool spinning_may_help() noexcept;

void spin_one_round() noexcept;

}  // namespace weft::detail
