#include "sched/park_in_section.h"

#include "sched/fork.h"
#include "sched/park.h"

namespace weft::sched {

void park_thread_until(detail::commit_fn commit, bool (*expire)(void*) noexcept, void* arg, detail::wait_reason why,
                       std::int64_t deadline_ns) noexcept {
  if (in_forked_child()) no_runtime_in_child();
  goroutine* g = thread_stand_in();
  g->reason = why;
  gmp::transition(*g, status::running, status::waiting);
  if (!commit(g, arg)) {
    gmp::transition(*g, status::waiting, status::runnable);
  } else if (!g->thread_note.sleep_until(deadline_ns)) {
    if (expire(arg)) {
      gmp::transition(*g, status::waiting, status::runnable);
    } else {
      g->thread_note.sleep();
    }
  }
  gmp::transition(*g, status::runnable, status::running);
}

}  // namespace weft::sched
