#include <weft/once.h>

#include "base/delay.h"
#include "sched/finishing.h"
#include "sched/park_in_section.h"
#include "sync/guard.h"
#include "sync/waiter.h"

namespace weft {

// With the guard held nobody else changes the word.
bool once_flag::begin_or_queue(detail::waiter& self, bool& queued) noexcept {
  sched::machine* const m = sched::enter();
  detail::wait_queue queue(head_);
  const std::uint32_t state = detail::take_guard(word_, guard) & ~guard;
  queued = state == running;
  if (queued) queue.push_back(self);
  detail::release_guard(word_, guard, [&](std::uint32_t w) { return state == fresh ? running : w; });
  if (m != nullptr) sched::leave_quietly(m);  // who is to call the function does so before others run
  return state == fresh;
}

bool once_flag::begin() noexcept {
  for (;;) {
    detail::waiter self;
    bool queued = false;
    if (begin_or_queue(self, queued)) return true;
    if (!queued) return false;
    self.parker.park(detail::wait_reason::once);
    if (self.granted) return false;
  }
}

void once_flag::finish(bool success) noexcept {
  const sched::finishing section;
  detail::wait_queue queue(head_);
  detail::wake_list woken;
  detail::take_guard(word_, guard);
  while (detail::waiter* w = queue.pop()) {
    w->granted = success;
    woken.add(*w);
  }
  // [once.done]
  detail::release_guard(word_, guard, [&](std::uint32_t) { return success ? done : fresh; });
  woken.wake_all();
}

}  // namespace weft
