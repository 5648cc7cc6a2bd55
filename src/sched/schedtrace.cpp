#include "sched/schedtrace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <unistd.h>

#include "base/fatal.h"
#include "sched/scheduler.h"
#include "sched/stack.h"

namespace weft::sched {
namespace {

// sysmon may not allocate: a page of text, written when it is full. A line that fits is written in one piece.
class output {
 public:
  ~output() { flush(); }

  template <class T>
  output& operator<<(const T& part) noexcept {
    base::text t;
    t << part;
    if (size_ + t.view().size() > sizeof buffer_) flush();
    std::memcpy(buffer_ + size_, t.view().data(), t.view().size());
    size_ += t.view().size();
    return *this;
  }

 private:
  void flush() noexcept {
    for (std::size_t at = 0; at < size_;) {
      const ssize_t n = ::write(STDERR_FILENO, buffer_ + at, size_ - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    size_ = 0;
  }

  char buffer_[16 * 1024];
  std::size_t size_ = 0;
};

struct shared_counts {
  std::int32_t idle_threads = 0;
  std::int32_t stop_wait = 0;
};

// Ms are never unmapped, and new ones come in front.
template <class Wanted>
const machine* find_machine(Wanted&& is_wanted) noexcept {
  const machine* m = sched.all_ms.load(std::memory_order_acquire);
  while (m != nullptr && !is_wanted(*m)) m = m->all_link;
  return m;
}

template <class Visit>
void for_each_machine(Visit&& visit) noexcept {
  for (const machine* m = sched.all_ms.load(std::memory_order_acquire); m != nullptr; m = m->all_link) visit(*m);
}

std::int32_t count_idle_locked() noexcept {
  std::int32_t n = 0;
  for_each_machine([&n](const machine& m) noexcept { n += m.locked_g != nullptr && m.asleep.load(std::memory_order_relaxed); });
  return n;
}

// Go's numbers for what weft has too, so that a row says the same to whoever knows Go's.
std::uint32_t number_of(processor_state s) noexcept {
  switch (s) {
    case processor_state::idle: return 0;
    case processor_state::running: return 1;
    case processor_state::stopped: return 3;
    default: return 4;
  }
}

struct shown_status {
  std::uint32_t number;
  std::string_view text;
};

// `m` is where it runs, null if it does not.
shown_status shown(status s, detail::wait_reason why, const machine* m) noexcept {
  switch (s) {
    case status::waiting: return {4, to_string(why)};
    case status::runnable:
    case status::timed: return {1, "runnable"};
    case status::preempted: return {9, "preempted"};
    default:
      if (m != nullptr && m->revoked.load(std::memory_order_relaxed) == gmp::p_in_call) return {3, "syscall"};
      return {2, "running"};
  }
}

shared_counts read_shared() noexcept {
  base::lock_guard guard(sched.lock);
  return {sched.idle_ms, sched.stop_wait};
}

void write_summary(output& out, std::int64_t since_start_ms, const shared_counts& shared, bool detail) noexcept {
  const int procs = sched.procs.load(std::memory_order_acquire);
  out << "SCHED " << since_start_ms << "ms: gomaxprocs=" << procs << " idleprocs=" << sched.idle_ps.load(std::memory_order_relaxed)
      << " threads=" << sched.threads.load(std::memory_order_relaxed)
      << " spinningthreads=" << sched.spinning.load(std::memory_order_relaxed)
      << " needspinning=" << (sched.need_spinning.load(std::memory_order_relaxed) ? 1 : 0)
      << " idlethreads=" << shared.idle_threads
      << " runqueue=" << std::uint64_t{sched.global_size.load(std::memory_order_relaxed)};
  if (detail) {
    out << " gcwaiting=" << (sched.stopping.load(std::memory_order_relaxed) ? 1 : 0) << " nmidlelocked=" << count_idle_locked()
        << " stopwait=" << shared.stop_wait << " sysmonwait=0\n";
    return;
  }
  out << " [";
  for (int i = 0; i < procs; ++i) {
    const processor* p = processor_at(i);
    out << " " << p->ring.size() + (p->runnext.load(std::memory_order_relaxed) != nullptr ? 1u : 0u);
  }
  out << " ]\n";
}

void write_processors(output& out) noexcept {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    processor* p = processor_at(i);
    const machine* m = p->owner.load(std::memory_order_acquire);
    out << "  P" << i << ": status=" << number_of(p->state.load(std::memory_order_relaxed))
        << " schedtick=" << p->slices()
        << " syscalltick=" << p->calls.load(std::memory_order_relaxed) << " m=";
    m == nullptr ? out << "nil" : out << m->id;
    out << " runqsize=" << p->ring.size() << " runnext=" << (p->runnext.load(std::memory_order_relaxed) != nullptr ? 1 : 0)
        << " timerslen=" << std::uint64_t{p->timers.size()} << "\n";
  }
}

const processor* processor_of(const machine* m) noexcept {
  const int procs = sched.procs.load(std::memory_order_acquire);
  for (int i = 0; i < procs; ++i) {
    const processor* p = processor_at(i);
    if (p->owner.load(std::memory_order_acquire) == m) return p;
  }
  return nullptr;
}

// Only the number of a goroutine is used that an M points to: it may be another one's by now, never a bad address.
void write_number(output& out, const goroutine* g) noexcept { g == nullptr ? out << "nil" : out << g->id.get(); }

// With nothing to do, or in the handler that has stopped its goroutine.
bool sleeps(const machine& m) noexcept {
  return m.asleep.load(std::memory_order_relaxed) || m.revoked.load(std::memory_order_relaxed) == gmp::p_stopped;
}

void write_machines(output& out) noexcept {
  for_each_machine([&out](const machine& m) noexcept {
    const processor* p = processor_of(&m);
    out << "  M" << m.id << ": p=";
    p == nullptr ? out << "nil" : out << p->id;
    out << " curg=";
    write_number(out, m.curg);
    out << " locks=" << m.locks.load(std::memory_order_relaxed) << " spinning=" << (m.spinning ? "true" : "false")
        << " blocked=" << (sleeps(m) ? "true" : "false") << " lockedg=";
    write_number(out, m.locked_g);
    out << "\n";
  });
}

void write_number(output& out, const machine* m) noexcept { m == nullptr ? out << "nil" : out << m->id; }

bool is_off(status s) noexcept { return s == status::waiting || s == status::runnable || s == status::timed; }

void write_goroutines(output& out) noexcept {
  const bool any_locked = find_machine([](const machine& m) noexcept { return m.locked_g != nullptr; }) != nullptr;
  for_each_goroutine([&out, any_locked](const goroutine& g) noexcept {
    const status s = g.state.load(std::memory_order_acquire);
    if (s == status::dead) return;
    const machine* m = is_off(s) ? nullptr : find_machine([&g](const machine& x) noexcept { return x.curg == &g; });
    const shown_status now = shown(s, g.reason.get(), m);
    out << "  G" << g.id.get() << ": status=" << now.number << "(" << now.text << ") m=";
    write_number(out, m);
    out << " lockedm=";
    write_number(out, any_locked ? find_machine([&g](const machine& x) noexcept { return x.locked_g == &g; }) : nullptr);
    out << "\n";
  });
}

}  // namespace

void trace_schedule(std::int64_t now) noexcept {
  static std::int64_t began = 0, next = 0;
  if (sched.procs.load(std::memory_order_acquire) == 0) return;  // the first start is still under way
  if (began == 0) began = next = now;
  if (now < next) return;
  // Like a ticker: what was missed is left out.
  const std::int64_t period = debug.schedtrace_ms * 1'000'000;
  next += period * (1 + (now - next) / period);
  const shared_counts shared = read_shared();
  output out;
  write_summary(out, (now - began) / 1'000'000, shared, debug.scheddetail);
  if (!debug.scheddetail) return;
  write_processors(out);
  write_machines(out);
  write_goroutines(out);
}

}  // namespace weft::sched
