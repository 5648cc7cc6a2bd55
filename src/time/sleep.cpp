#include <weft/time.h>

#include <weft/detail/park.h>
#include <weft/go.h>

#include "sched/parker.h"

namespace weft::detail {

void sleep_until_ns(std::int64_t deadline_ns) {
  if (deadline_ns <= now_ns()) return yield();
  sched::parker self;
  self.park_until(wait_reason::sleep, deadline_ns);
}

void throw_bad_period() { throw std::invalid_argument("weft::ticker: the period must be more than 0"); }

}  // namespace weft::detail
