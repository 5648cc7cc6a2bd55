#include "sched/revoke.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/delay.h"
#include "sched/tracing.h"

namespace weft::sched {
namespace {

constinit bool have_membarrier = false;

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

void prepare_revoking() noexcept { have_membarrier = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

bool can_revoke() noexcept { return have_membarrier; }

bool barrier_everywhere() noexcept { return have_membarrier && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

bool announce_revocation(machine* m) noexcept {
  if (m->locks.load(std::memory_order_acquire) != 0) return false;
  // The M itself writes p_in_call, in a section: then our look at `locks` and `revoked` after the barrier finds it out.
  std::uint32_t attached = gmp::p_attached;
  return m->revoked.compare_exchange_strong(attached, gmp::p_revoked, std::memory_order_relaxed);
}

void withdraw_revocation(machine* m) noexcept {
  std::uint32_t revoked = gmp::p_revoked;
  m->revoked.compare_exchange_strong(revoked, gmp::p_attached, std::memory_order_release, std::memory_order_relaxed);
}

processor* complete_revocation(machine* m) noexcept {
  const bool outside = m->locks.load(std::memory_order_acquire) == 0;  // [section.leave], [section.enter]
  if (!outside || m->revoked.load(std::memory_order_relaxed) != gmp::p_revoked) {
    withdraw_revocation(m);
    return nullptr;
  }
  gmp::transition(*m->curg, status::running, status::detached);
  sched.loose.fetch_add(1, std::memory_order_relaxed);
  m->p->owner.store(nullptr, std::memory_order_relaxed);
  if (is_traced(m->p)) [[unlikely]] trace_stop(m->p, m->curg, trace::why::preempted);
  return m->p;
}

processor* revoke(machine* m) noexcept {
  if (!have_membarrier || !announce_revocation(m)) return nullptr;
  base::delay();
  if (!barrier_everywhere()) [[unlikely]] {
    withdraw_revocation(m);
    return nullptr;
  }
  return complete_revocation(m);
}

void no_longer_loose(machine* m, std::uint32_t now) noexcept {
  m->revoked.store(now, std::memory_order_release);
  sched.loose.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace weft::sched
