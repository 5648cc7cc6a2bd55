#include "sched/records.h"

namespace weft::sched {

constinit magazine_pool<record> record_pool;

}  // namespace weft::sched
