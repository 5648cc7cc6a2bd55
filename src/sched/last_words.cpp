// A deadlock is when all of this holds at one moment:
//   - run() is under way, its thread waits for the main goroutine, and that has not ended
//   - every P is idle (so no queue has a goroutine, and no M runs a timer)
//   - no timer is pending
//   - nobody waits for a descriptor
//   - every M sleeps: so none has a goroutine in a blocking call, or in its hands, on the way from one queue to another
//     (nor has sysmon)
//   - the process has no threads but the runtime's and the one that waits in run()
// Only a goroutine, a timer, a descriptor or a thread can make a goroutine runnable, so it stays that way. "At one moment"
// is made sure of by looking twice, with a count in between that everything that starts or wakes a goroutine changes.
#include "sched/last_words.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fatal.h"
#include "gmp/current.h"
#include "os/clock.h"
#include "poll/poller.h"
#include "sched/fork.h"
#include "sched/report.h"
#include "sched/stand_still.h"
#include "sched/threads.h"
#include "sched/timers.h"
#include "trace/writer.h"

namespace weft::sched {
namespace {

constexpr std::int64_t patience_ns = 10'000'000'000;  // of who dies, with who lists the goroutines

enum : std::uint32_t { list_none, list_wanted, list_written };

// Until then another SIGQUIT is the same wish again: a terminal and a script may both send one. After it the dump is stuck, and the
// next one ends the program as if weft had no handler.
constexpr std::int64_t same_quit_ns = 2'000'000'000;

struct requests {
  std::atomic<bool> quit{false};
  std::atomic<std::int64_t> quit_since{0};  // when the first SIGQUIT came; 0: none has
  std::atomic<bool> deadlock_check{false};
  // list: none --who dies--> wanted --the factory--> written. The first who dies is the only one.
  base::futex_word list{list_none};
  std::atomic<const goroutine*> dying{nullptr};
};
constinit requests requested;

// ---- the end -------------------------------------------------------------------------------------------------------

// What the program printed so far should not be lost; but a goroutine may hold the lock of the stream, for ever.
void flush_stdout() noexcept {
  if (::ftrylockfile(stdout) != 0) return;
  std::fflush(stdout);
  ::funlockfile(stdout);
}

[[noreturn]] void end_with_report(const char* first_line) {
  base::announce_end();
  flush_stdout();
  base::text t;
  (t << first_line << "\n\n").print();
  try {
    report_to_stderr();
  } catch (const std::exception& e) {
    (t << "(no report: " << e.what() << ")\n").print();
  }
  trace::write_last_part();
  ::_exit(2);
}

// ---- a fatal error -------------------------------------------------------------------------------------------------

// Where all the others can be stopped: not while this thread keeps its P, or a lock that the stop needs.
bool may_wait_for_list() noexcept {
  if (handler_in_forked_child() || is_service_thread(::gettid())) return false;
  const machine* m = gmp::current_machine();
  return m == nullptr || (m->curg != nullptr && m->locks.load(std::memory_order_relaxed) == 0);
}

void list_goroutines(const void* signal_context) noexcept {
  if (!may_wait_for_list()) return;
  if (machine* m = gmp::current_machine()) {
    const goroutine* nobody = nullptr;
    requested.dying.compare_exchange_strong(nobody, m->curg, std::memory_order_relaxed);
    stand_for_good(m, signal_context != nullptr ? os::interrupted_at(signal_context) : os::here());
  }
  std::uint32_t none = list_none;
  if (requested.list.compare_exchange_strong(none, list_wanted, std::memory_order_release, std::memory_order_relaxed)) {  // [last_words.request]
    wake_factory();
  }
  const std::int64_t deadline = os::now_ns() + patience_ns;
  while (requested.list.load(std::memory_order_acquire) == list_wanted) {
    if (!base::futex_wait_until(requested.list, list_wanted, deadline)) return;
  }
}

void write_list() {
  print_to_stderr("\n");
  census c;
  c.take_for(requested.dying.load(std::memory_order_relaxed));
  print_to_stderr(report(c));
}

void attend_list() noexcept {
  if (requested.list.load(std::memory_order_acquire) != list_wanted) return;  // [last_words.request]
  try {
    write_list();
  } catch (const std::exception&) {
    // It was worth a try.
  }
  requested.list.store(list_written, std::memory_order_release);
  base::futex_wake(requested.list, INT_MAX);
}

// ---- SIGQUIT -------------------------------------------------------------------------------------------------------

// A shell without job control starts what ends in & with SIGQUIT ignored. That is not a wish of the program's.
bool ignores_quit() noexcept {
  struct sigaction action = {};
  return ::sigaction(SIGQUIT, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}
const bool ignored_from_the_start = ignores_quit();

bool is_quit_free() noexcept {
  struct sigaction action = {};
  if (::sigaction(SIGQUIT, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0) return false;
  return action.sa_handler == SIG_DFL || (action.sa_handler == SIG_IGN && ignored_from_the_start);
}

// This may be the thread that sleeps in a main() of the program's own, whose call the signal has cut short: it might go on to end the
// program in a way in which await_the_end() is not asked. Not for ever: it may hold what the dump needs.
void hold_main_thread() noexcept {
  if (gmp::current_machine() != nullptr || is_service_thread(::gettid())) return;
  const std::int64_t until = os::now_ns() + same_quit_ns;
  for (std::int64_t left = same_quit_ns; left > 0; left = until - os::now_ns()) os::sleep_thread_ns(left);
}

void on_quit(int signal) noexcept {
  const int saved = errno;
  std::int64_t first = 0;
  const std::int64_t now = os::now_ns();
  const bool is_first = requested.quit_since.compare_exchange_strong(first, now, std::memory_order_relaxed);
  if (handler_in_forked_child() || (!is_first && now - first >= same_quit_ns)) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  if (is_first) {
    base::foresee_end();
    requested.quit.store(true, std::memory_order_release);  // [last_words.request]
    wake_factory();
    hold_main_thread();
  }
  errno = saved;
}

// For how long the end is waited for: as long as the report may take, with the list and what a trace has to write yet; a moment if
// nobody has begun with it; and a moment more for what the program does after it.
std::int64_t patience_with_end() noexcept {
  if (base::state_of_end() == base::end::told) return 1'000'000'000;
  return base::announcer_of_end() == 0 ? same_quit_ns : patience_ns + 35'000'000'000;
}

// ---- deadlock ------------------------------------------------------------------------------------------------------

// Changes whenever a goroutine is started, readied or parks, or a thread is woken to look for one.
std::uint64_t activity() noexcept {
  std::uint64_t n = sched.created_outside.load(std::memory_order_acquire) + sched.machine_wakeups.load(std::memory_order_acquire);
  for (int i = 0; i < sched.procs.load(std::memory_order_acquire); ++i) {
    const auto& c = processor_at(i)->counters;
    n += c.created.read() + c.readied.read() + c.parks.read() + c.finished.read();
  }
  return n;
}

bool is_ours(std::int32_t tid) noexcept {
  if (tid == sched.run_thread.load(std::memory_order_acquire) || is_service_thread(tid)) return true;
  for (const machine* m = sched.all_ms.load(std::memory_order_acquire); m != nullptr; m = m->all_link) {
    if (m->tid == tid) return true;
  }
  return false;
}

class directory {
 public:
  explicit directory(const char* path) : dir_(::opendir(path)) {}
  ~directory() {
    if (dir_ != nullptr) ::closedir(dir_);
  }
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;

  // The next name that is a number; -1: no more. What cannot be read has none.
  int next_number() {
    while (const dirent* entry = dir_ != nullptr ? ::readdir(dir_) : nullptr) {
      if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') return std::atoi(entry->d_name);
    }
    return -1;
  }

 private:
  DIR* const dir_;
};

// Also if /proc cannot be read: then nothing is known.
bool outside_thread_exists() {
  directory tasks("/proc/self/task");
  int seen = 0;
  for (int tid; (tid = tasks.next_number()) != -1; ++seen) {
    if (!is_ours(tid)) return true;
  }
  return seen == 0;
}

enum class idle { no, but_for_the_poller, yes };

// [machine.asleep] acquire: what the M did before it fell asleep, a goroutine that it put into a queue say, is seen here
idle idleness() noexcept {
  if (sched.run_thread.load(std::memory_order_acquire) <= 0 || sched.life.load(std::memory_order_acquire) != phase::running) return idle::no;
  if (count_goroutines() == 0 && !sched.main_exited.load(std::memory_order_acquire)) return idle::no;
  // In the order in which a goroutine goes from hand to hand: it is taken from a timer or a descriptor, by an M or sysmon,
  // put into a queue, and run by who has a P. So it is seen in one place or the next.
  forget_stopped_timers();
  if (next_timer() != 0 || poll::any_waiter()) return idle::no;
  base::lock_guard guard(sched.lock);
  int awake = 0;
  for (const machine* m = sched.all_ms.load(std::memory_order_acquire); m != nullptr; m = m->all_link) {
    if (m->curg != nullptr) return idle::no;
    awake += !m->asleep.load(std::memory_order_acquire);
  }
  const bool in_poller = sched.poll_until.load(std::memory_order_seq_cst) != 0;
  if (awake > (in_poller ? 1 : 0) || sched.sysmon_delivers.load(std::memory_order_acquire)) return idle::no;
  if (sched.stopping.load(std::memory_order_relaxed) || sched.global_size.load(std::memory_order_relaxed) != 0) return idle::no;
  if (sched.idle_ps.load(std::memory_order_seq_cst) != sched.procs.load(std::memory_order_acquire)) return idle::no;
  return awake == 0 ? idle::yes : idle::but_for_the_poller;
}

void check_for_deadlock() {
  const std::uint64_t before = activity();
  const idle first = idleness();
  // It waits for a timer that was stopped, or has a goroutine in its hands: it looks again, and sleeps where it should, and
  // the next check tells.
  if (first == idle::but_for_the_poller) poll::interrupt();
  if (first != idle::yes || outside_thread_exists()) return;
  if (idleness() != idle::yes || activity() != before) return;
  if (sched.main_exited.load(std::memory_order_acquire) && count_goroutines() == 0) {
    end_with_report("fatal error: no goroutines (main called exit_goroutine) - deadlock!");
  }
  end_with_report("fatal error: all goroutines are asleep - deadlock!");
}

}  // namespace

void install_quit_handler() noexcept {
  if (!is_quit_free()) return;
  struct sigaction action = {};
  action.sa_handler = &on_quit;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGQUIT, &action, nullptr);
}

bool may_be_deadlocked() noexcept { return idleness() != idle::no; }

void request_deadlock_check() noexcept {
  requested.deadlock_check.store(true, std::memory_order_release);  // [last_words.request]
  wake_factory();
}

void list_goroutines_before_the_end(const void* signal_context) noexcept {
  list_goroutines(signal_context);
  trace::write_last_part();
  base::tell_end();
}

void await_the_end() noexcept {
  static constinit std::atomic<bool> given_up{false};
  base::end phase = base::state_of_end();
  if (phase == base::end::none || handler_in_forked_child()) return;
  if (base::announcer_of_end() == ::gettid() || given_up.load(std::memory_order_relaxed)) return;
  for (std::int64_t since = os::now_ns(); os::now_ns() - since < patience_with_end(); os::sleep_thread_ns(1'000'000)) {
    if (base::state_of_end() == phase) continue;
    phase = base::state_of_end();
    since = os::now_ns();
  }
  given_up.store(true, std::memory_order_relaxed);  // it does not end: nobody waits again
}

void prepare_last_words() noexcept {
  base::set_before_abort([]() noexcept { list_goroutines_before_the_end(); });
  std::atexit(&await_the_end);
}

void attend_last_words() {
  attend_list();
  if (requested.quit.load(std::memory_order_acquire)) end_with_report("SIGQUIT: quit");  // [last_words.request]
  if (requested.deadlock_check.exchange(false, std::memory_order_acquire)) check_for_deadlock();
}

void report_leaks() {
  census c;
  c.take();
  std::size_t waiting = 0;
  for (const census::member& m : c.members()) waiting += m.state == status::waiting;
  if (waiting == 0) return;
  base::text t;
  (t << "weft: run() leaves " << std::uint64_t{waiting} << (waiting == 1 ? " goroutine" : " goroutines") << " behind that still "
     << (waiting == 1 ? "waits" : "wait") << ":\n\n").print();
  print_to_stderr(report(c, /*only_waiting=*/true));
}

}  // namespace weft::sched
