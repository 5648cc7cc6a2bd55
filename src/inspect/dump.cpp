#include <weft/runtime.h>

#include <ostream>

#include "sched/census.h"
#include "sched/report.h"

namespace weft::runtime {

void dump_goroutines(std::ostream& out) {
  std::string text;
  {
    weft::sched::census c;
    c.take_from_anywhere();
    text = weft::sched::report(c);
  }
  out << text;
}

}  // namespace weft::runtime
