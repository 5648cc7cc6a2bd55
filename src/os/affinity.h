// Which cores a thread may use, where it is, and how soon it has its turn.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace weft::os {

// 1024 CPUs; with more of them the calls below fail, and nothing happens.
struct cpu_mask {
  unsigned long words[16];
};

// Keeps a sleeping thread of this process off one core, if it may use others, so that it wakes up elsewhere; `before` is what it
// could use until now. False: nothing has changed.
bool keep_off(pid_t tid, int cpu, cpu_mask& before) noexcept;

// Puts a sleeping thread of this process on one core, so that it wakes up there, if it may use that one and no more than `most`
// in all; `before` as above.
bool put_on(pid_t tid, int cpu, int most, cpu_mask& before) noexcept;

// Adds a core; one that does not fit is forgotten.
void add(cpu_mask& mask, int cpu) noexcept;
bool contains(const cpu_mask& mask, int cpu) noexcept;

// Moves a thread of this process (0: the calling one) to a core that is not in `taken`. False: it may use none.
bool move_off(pid_t tid, const cpu_mask& taken) noexcept;

// The same for another thread, which may be about to run again: not if its cores are others than the caller's, so that what somebody
// has chosen for it, or is about to undo, stays.
bool move_off_if_like_ours(pid_t tid, const cpu_mask& taken) noexcept;

// Where others can read on which core the calling thread is, or was when it ran last; null if the system does not tell.
const std::uint32_t* current_cpu_word() noexcept;

// The calling thread may use these again.
void allow(const cpu_mask& mask) noexcept;

// For this thread, which never runs for long: the kernel gives it shorter slices, and in return earlier ones (Linux 6.12).
void ask_for_short_slices() noexcept;

}  // namespace weft::os
