#include "sched/timer_blocks.h"

namespace weft::sched {

constinit magazine_pool<timer_block, false> timer_block_pool;

}  // namespace weft::sched
