#include "sched/stand_still.h"

#include <climits>

#include "base/delay.h"
#include "os/clock.h"
#include "sched/preempt_signal.h"

namespace weft::sched {
namespace {

enum : std::uint32_t { stand_free = 0, stand_asked = 1, stand_standing = 2 };

}  // namespace

void ask_to_stand(machine* m) noexcept {
  if (is_standing(m)) return;  // for good
  m->stand.store(stand_asked, std::memory_order_release);
  base::delay();
  send_preempt_signal(m, signal_purpose::stand_still);
}

bool await_standing(machine* m, std::int64_t deadline_ns) noexcept {
  while (!is_standing(m)) {
    if (!base::futex_wait_until(m->stand, stand_asked, deadline_ns)) return is_standing(m);
  }
  return true;
}

bool is_standing(const machine* m) noexcept {
  return m->stand.load(std::memory_order_acquire) == stand_standing;
}  // [stand.position]

void let_go(machine* m) noexcept {
  if (m->stand.exchange(stand_free, std::memory_order_acq_rel) == stand_standing)
    base::futex_wake(m->stand, INT_MAX);  // [stand.let_go]
}

void stand_if_asked(machine* m, const void* signal_context) noexcept {
  if (m->stand.load(std::memory_order_acquire) != stand_asked) return;
  m->position = position_in_handler(m, signal_context);
  base::delay();
  std::uint32_t asked = stand_asked;
  if (!m->stand.compare_exchange_strong(asked, stand_standing, std::memory_order_release, std::memory_order_relaxed))
    return;  // [stand.position]
  base::futex_wake(m->stand, INT_MAX);
  while (m->stand.load(std::memory_order_acquire) == stand_standing)
    base::futex_wait(m->stand, stand_standing);  // [stand.let_go]
}

void stand_for_good(machine* m, const os::machine_state& position) noexcept {
  m->position = position;
  m->stand.store(stand_standing, std::memory_order_release);  // [stand.position]
  base::futex_wake(m->stand, INT_MAX);
}

}  // namespace weft::sched
