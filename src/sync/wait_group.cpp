#include <weft/wait_group.h>

namespace weft {

void wait_group::misused(int delta) {
  if (delta < 0) throw std::logic_error("weft::wait_group: negative counter");
  throw std::logic_error("weft::wait_group: add() while others wait for an earlier round, or too many");
}

}  // namespace weft
