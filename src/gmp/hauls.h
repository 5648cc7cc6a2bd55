// Whether stealing pays, as one M sees it. Goroutines that talk to one another are best off on one P. An idle P that takes some of
// them away runs dry a moment later, takes the next ones, and in the end all of them talk across cores, slower than one P alone
// would be. So who has made such a poor haul leaves the next of that size where it is for a while, longer each time. It goes on
// looking meanwhile, so that somebody is on the way to them, and takes what still waits then.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::gmp {

class hauls {
 public:
  static constexpr std::int64_t poor_ns = 5'000;  // of work: several times what a theft costs all who are part in it
  static constexpr std::int64_t first_patience_ns = 2'000;
  static constexpr std::int64_t most_patience_ns = 16'000;

  void took(std::uint32_t goroutines) noexcept { last_ = goroutines; }

  // There is nothing left to do on the P. It had `worked_ns` since it last looked for work.
  void ran_dry(std::int64_t worked_ns) noexcept {
    if (last_ == 0) return;
    const bool poor = worked_ns < poor_ns;
    poor_ = poor ? last_ : 0;
    patience_ = poor ? std::clamp(2 * patience_, first_patience_ns, most_patience_ns) : 0;
    last_ = 0;
  }

  // To be stolen from a ring of so many: half of them. `looked_ns`: for how long it has been looking.
  bool leaves(std::uint32_t waiting, std::int64_t looked_ns) const noexcept {
    return waiting <= 2 * poor_ && looked_ns < patience_;
  }

 private:
  std::uint32_t last_ = 0;       // goroutines in the last haul, if it is not known yet what it was worth
  std::uint32_t poor_ = 0;       // goroutines in the last one, if it was poor
  std::int64_t patience_ = 0;
};

}  // namespace weft::gmp
