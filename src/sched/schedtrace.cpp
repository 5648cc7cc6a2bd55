#include "sched/schedtrace.h"

#include <algorithm>
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

shared_counts read_shared() noexcept {
  base::lock_guard guard(sched.lock);
  return {sched.idle_ms, sched.stop_wait};
}

void write_summary(output& out, std::int64_t since_start_ms, const shared_counts& shared, bool detail) noexcept {
  const int procs = sched.procs.load(std::memory_order_acquire);
  out << "SCHED " << since_start_ms << "ms: procs=" << procs << " idleprocs=" << sched.idle_ps.load(std::memory_order_relaxed)
      << " threads=" << sched.threads.load(std::memory_order_relaxed)
      << " spinningthreads=" << sched.spinning.load(std::memory_order_relaxed)
      << " needspinning=" << (sched.need_spinning.load(std::memory_order_relaxed) ? 1 : 0)
      << " idlethreads=" << shared.idle_threads
      << " runqueue=" << std::uint64_t{sched.global_size.load(std::memory_order_relaxed)};
  if (detail) {
    out << " gcwaiting=0 nmidlelocked=0 stopwait=" << shared.stop_wait << " sysmonwait=0\n";
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
    out << "  P" << i << ": status=" << static_cast<std::uint32_t>(p->state.load(std::memory_order_relaxed))
        << " schedtick=" << p->sched_tick.load(std::memory_order_relaxed)
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

void write_machines(output& out) noexcept {
  for (const machine* m = sched.all_ms.load(std::memory_order_acquire); m != nullptr; m = m->all_link) {
    const processor* p = processor_of(m);
    // Only the number of what is read through curg is used: it may be another goroutine's by now, never a bad address.
    const goroutine* g = m->curg;
    out << "  M" << m->id << ": p=";
    p == nullptr ? out << "nil" : out << p->id;
    out << " curg=";
    g == nullptr ? out << "nil" : out << g->id.get();
    out << " locks=" << m->locks.load(std::memory_order_relaxed) << " spinning=" << (m->spinning ? "true" : "false")
        << " blocked=" << (p == nullptr && g == nullptr ? "true" : "false") << "\n";
  }
}

const machine* machine_of(const goroutine& g) noexcept {
  const machine* m = sched.all_ms.load(std::memory_order_acquire);
  while (m != nullptr && m->curg != &g) m = m->all_link;
  return m;
}

void write_goroutines(output& out) noexcept {
  for_each_goroutine([&out](const goroutine& g) noexcept {
    const status s = g.state.load(std::memory_order_acquire);
    if (s == status::dead) return;
    out << "  G" << g.id.get() << ": status=" << static_cast<std::uint32_t>(s) << "("
        << (s == status::waiting ? to_string(g.reason.get()) : gmp::to_string(s)) << ") m=";
    const machine* m = s == status::waiting || s == status::runnable ? nullptr : machine_of(g);
    m == nullptr ? out << "nil" : out << m->id;
    out << " lockedm=nil\n";
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
