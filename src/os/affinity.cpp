#include "os/affinity.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define WEFT_HAS_RSEQ 1
#endif

namespace weft::os {
namespace {

constexpr int word_bits = 8 * sizeof(unsigned long);
constexpr int max_cpus = word_bits * static_cast<int>(sizeof(cpu_mask::words) / sizeof *cpu_mask::words);

// The kernel's sched_attr, in its first version.
struct scheduling {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

bool is_empty(const cpu_mask& mask) noexcept {
  unsigned long any = 0;
  for (const unsigned long word : mask.words) any |= word;
  return any == 0;
}

int count(const cpu_mask& mask) noexcept {
  int n = 0;
  for (const unsigned long word : mask.words) n += std::popcount(word);
  return n;
}

// Callers may stand in a goroutine, whose errno is not theirs to change.
template <class Call>
long without_errno(Call call) noexcept {
  const int before = errno;
  const long n = call();
  errno = before;
  return n;
}

bool get_mask(pid_t tid, cpu_mask& mask) noexcept {
  mask = {};
  return without_errno([&] { return ::syscall(SYS_sched_getaffinity, tid, sizeof mask.words, mask.words); }) > 0;
}

bool set_mask(pid_t tid, const cpu_mask& mask) noexcept {
  return without_errno([&] { return ::syscall(SYS_sched_setaffinity, tid, sizeof mask.words, mask.words); }) == 0;
}

bool equal(const cpu_mask& a, const cpu_mask& b) noexcept { return std::equal(a.words, std::end(a.words), b.words); }

cpu_mask without(cpu_mask mask, const cpu_mask& taken) noexcept {
  for (std::size_t i = 0; i < sizeof mask.words / sizeof *mask.words; ++i) mask.words[i] &= ~taken.words[i];
  return mask;
}

// False, and nothing has changed, if nothing would be left of `all`.
bool set_rest(pid_t tid, const cpu_mask& all, const cpu_mask& taken) noexcept {
  const cpu_mask rest = without(all, taken);
  return !is_empty(rest) && set_mask(tid, rest);
}

bool restrict(pid_t tid, const cpu_mask& taken, cpu_mask& before) noexcept {
  return get_mask(tid, before) && set_rest(tid, before, taken);
}

}  // namespace

void add(cpu_mask& mask, int cpu) noexcept {
  if (cpu >= 0 && cpu < max_cpus) mask.words[cpu / word_bits] |= 1UL << (cpu % word_bits);
}

bool contains(const cpu_mask& mask, int cpu) noexcept {
  return cpu >= 0 && cpu < max_cpus && (mask.words[cpu / word_bits] >> (cpu % word_bits) & 1) != 0;
}

bool keep_off(pid_t tid, int cpu, cpu_mask& before) noexcept {
  cpu_mask taken{};
  add(taken, cpu);
  return restrict(tid, taken, before);
}

bool put_on(pid_t tid, int cpu, int most, cpu_mask& before) noexcept {
  cpu_mask wanted{};
  add(wanted, cpu);
  return get_mask(tid, before) && contains(before, cpu) && count(before) <= most && set_mask(tid, wanted);
}

bool move_off(pid_t tid, const cpu_mask& taken) noexcept {
  cpu_mask before;
  return restrict(tid, taken, before) && set_mask(tid, before);  // it stays where it is now
}

bool move_off_if_like_ours(pid_t tid, const cpu_mask& taken) noexcept {
  cpu_mask ours, theirs, now;
  if (!get_mask(0, ours) || !get_mask(tid, theirs) || !equal(ours, theirs) || !set_rest(tid, theirs, taken)) return false;
  // It runs by now, maybe, and what it has chosen for itself since then stays.
  if (get_mask(tid, now) && equal(now, without(theirs, taken))) set_mask(tid, theirs);
  return true;
}

const std::uint32_t* current_cpu_word() noexcept {
#ifdef WEFT_HAS_RSEQ
  if (__rseq_size == 0) return nullptr;
  auto* area = reinterpret_cast<const struct rseq*>(static_cast<const std::byte*>(__builtin_thread_pointer()) + __rseq_offset);
  return &area->cpu_id;
#else
  return nullptr;
#endif
}

void ask_for_short_slices() noexcept {
  constexpr std::uint64_t slice_ns = 100'000;  // the least that there is
  scheduling s{};
  if (::syscall(SYS_sched_getattr, 0, &s, sizeof s, 0) != 0 || s.policy != SCHED_OTHER) return;
  s.runtime = slice_ns;
  ::syscall(SYS_sched_setattr, 0, &s, 0);
}

void allow(const cpu_mask& mask) noexcept { set_mask(0, mask); }

}  // namespace weft::os
