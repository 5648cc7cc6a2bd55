#include "os/affinity.h"

#include <cstddef>

#include <sys/syscall.h>
#include <unistd.h>

namespace weft::os {
namespace {

constexpr int word_bits = 8 * sizeof(unsigned long);

bool is_empty(const cpu_mask& mask) noexcept {
  unsigned long any = 0;
  for (const unsigned long word : mask.words) any |= word;
  return any == 0;
}

}  // namespace

bool keep_off(pid_t tid, int cpu, cpu_mask& before) noexcept {
  before = {};
  if (cpu < 0 || cpu >= word_bits * static_cast<int>(sizeof before.words / sizeof *before.words)) return false;
  if (::syscall(SYS_sched_getaffinity, tid, sizeof before.words, before.words) <= 0) return false;
  cpu_mask rest = before;
  rest.words[cpu / word_bits] &= ~(1UL << (cpu % word_bits));
  if (is_empty(rest)) return false;
  return ::syscall(SYS_sched_setaffinity, tid, sizeof rest.words, rest.words) == 0;
}

void allow(const cpu_mask& mask) noexcept { ::syscall(SYS_sched_setaffinity, 0, sizeof mask.words, mask.words); }

}  // namespace weft::os
