// What the runtime says before it ends the program, or at the end of run(): on SIGQUIT, and when all goroutines are asleep
// and nothing can wake one, every goroutine is listed and the exit code is 2, as in Go.
//
// Nothing of it is done where it is noticed, in a signal handler or by sysmon, which may neither allocate nor wait: they
// leave a request to the factory thread, which may.
#pragma once

#include <cstdint>

#include "base/fatal.h"
#include "sched/scheduler.h"

namespace weft::sched {

// A goroutine, or a plain thread, is about to end the program: lists all goroutines, it first, and returns. Says nothing if
// it dies inside the runtime, whose state may be what is broken, or if the runtime does not answer within seconds. From a
// signal handler: with the handler's third argument.
void list_goroutines_before_the_end(const void* signal_context = nullptr) noexcept;
// Once: base::fatal() does that from now on, and exit() awaits the end.
void prepare_last_words() noexcept;
// If another thread is about to end the program, with a report, waits until it has; not for ever. For who is about to end it without
// one: as in Go, main does not return while a goroutine panics.
void await_the_end() noexcept;
// "goroutine 18 [running] "name"", as in the list, at the beginning of a report.
inline void name_dying(base::text& t, const goroutine& g) noexcept {
  t << "goroutine " << g.id << " [running]";
  if (const std::string_view name = g.name(); !name.empty()) (t << " ").quote(name);
}

// Once. SIGQUIT is left alone if the program has a handler of its own for it, or has begun to ignore it.
void install_quit_handler() noexcept;

// sysmon, when every P is idle. Cheap, and too pessimistic: the factory looks more closely.
bool may_be_deadlocked() noexcept;
void request_deadlock_check() noexcept;

// The factory.
void attend_last_words();

// WEFTDEBUG=leaks=1: the goroutines that still wait, to stderr.
void report_leaks();

}  // namespace weft::sched
