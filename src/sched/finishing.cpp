#include "sched/finishing.h"

#include "base/lock.h"
#include "os/clock.h"

namespace weft::sched {
namespace {

// [handing_on.end] seq_cst: who hands on counts it and then looks whether that is over; the end says so and then looks at the count.
constinit std::atomic<std::int32_t> handed_on{0};
constinit std::atomic<bool> may_hand_on{false};

}  // namespace

bool step_outside(machine* m) noexcept {
  const std::uint32_t revoked = m->revoked.load(std::memory_order_relaxed);
  // Neither a call, whose end nobody else decides; nor a forked child, where that lock may be held for ever.
  if (revoked != gmp::p_in_call && revoked != gmp::p_forked) {
    base::lock_guard guard(sched.lock);
    if (m->revoked.load(std::memory_order_relaxed) == gmp::p_attached) return false;  // given back, or never taken
  }
  gmp::hide_current_machine();
  return true;
}

bool step_inside(machine* m) noexcept {
  gmp::set_current_machine(m);
  return m->revoked.load(std::memory_order_relaxed) != gmp::p_forked;
}

bool begin_handing_on() noexcept {
  handed_on.fetch_add(1, std::memory_order_seq_cst);
  if (may_hand_on.load(std::memory_order_seq_cst)) return true;  // [handing_on.end]
  end_handing_on();
  return false;
}

void end_handing_on() noexcept { handed_on.fetch_sub(1, std::memory_order_seq_cst); }

void allow_handing_on() noexcept { may_hand_on.store(true, std::memory_order_seq_cst); }

void let_handed_on_end() noexcept {
  constexpr std::int64_t longest_ns = 100'000'000, nap_ns = 20'000;
  may_hand_on.store(false, std::memory_order_seq_cst);
  const std::int64_t limit = os::now_ns() + longest_ns;
  while (handed_on.load(std::memory_order_seq_cst) != 0 && os::now_ns() < limit) os::sleep_thread_ns(nap_ns);  // [handing_on.end]
}

}  // namespace weft::sched
