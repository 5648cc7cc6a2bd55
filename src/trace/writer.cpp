#include "trace/writer.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <limits>
#include <span>
#include <utility>

#include "base/futex.h"
#include "os/clock.h"
#include "trace/log.h"
#include "trace/output.h"
#include "trace/perfetto.h"

namespace weft::trace {
namespace {

// How much a program that is killed may lack at the end of its trace. What is written that seldom costs nothing.
constexpr std::int64_t longest_delay_ns = 100'000'000;
// Of who ends the program, with a writer that gets nowhere: the disk may be stuck, or nobody read the pipe that the trace
// goes to. With one that gets on, but slowly, so many times as much.
constexpr std::int64_t patience_ns = 3'000'000'000;
constexpr int most_times = 10;

struct {
  pthread_t thread{};
  std::atomic<std::int32_t> tid{0};
  std::atomic<pid_t> of_process{0};  // who has the thread, which a forked child has not; 0: nobody
  // Everything up to now is wanted in the file for the n-th time, and was written for so many of them. [writer.last_part]
  std::atomic<std::uint32_t> wanted{0};
  base::futex_word served{0};
  std::atomic<std::uint32_t> pieces{0};  // it has got on
} constinit writing;

// Touched by the thread while it runs, and by who controls the trace before and after. Never destroyed: at the end of the
// program the thread may be writing still.
output& file() {
  static output& f = *new output;
  return f;
}

// What cannot be kept in memory or on disk is thrown away; the first failure is what stop() tells.
class scribe {
 public:
  void write_full() { add_full(take_full()); }

  // All that was logged before this.
  void write_everything() {
    const lot all = take_all(room_);
    add_full(all.full);
    for (const unfinished& u : all.rest) {
      if (u.what != nullptr) add(*u.what, u.count);
    }
    file().write(encoder_.out());
  }

 private:
  void add_full(chunk* first) {
    while (chunk* c = first) {
      first = c->next;
      add(*c, c->count);
      give_back(c);
    }
  }

  void add(chunk& c, std::uint32_t end) {
    const std::uint32_t begin = std::exchange(c.written, end);
    writing.pieces.fetch_add(1, std::memory_order_relaxed);
    if (file().has_failed()) return;
    try {
      encoder_.add(c.source, std::span(c.events + begin, c.events + end));
      file().write_if_enough(encoder_.out());
    } catch (const std::exception&) {
      file().fail(std::errc::not_enough_memory);
    }
  }

  perfetto_encoder encoder_;
  all_unfinished room_;
};

void serve(std::uint32_t wanted) noexcept {
  writing.served.store(wanted, std::memory_order_seq_cst);  // [writer.last_part] what is in the file
  base::futex_wake(writing.served, INT_MAX);
}

// Until the trace has ended. Who wants the last part is about to end the program: what comes after it stays where it is,
// lest the end cut it in two, unless stop() is called after all.
void write_all() {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  scribe s;
  std::uint32_t served = writing.served.load(std::memory_order_relaxed);
  for (std::int64_t next = 0;;) {
    const std::uint32_t seen = news();
    const std::uint32_t wanted = writing.wanted.load(std::memory_order_seq_cst);
    const bool ended = has_ended(), is_last = wanted != served;
    if (ended || is_last || os::now_ns() >= next) {
      s.write_everything();
      next = is_last ? never : os::now_ns() + longest_delay_ns;
    } else if (next != never) {
      s.write_full();
    }
    if (ended) return;
    if (is_last) serve(served = wanted);
    wait_for_news(seen, next);
  }
}

void* writer_thread(void*) {
  writing.tid.store(::gettid(), std::memory_order_release);
  ::pthread_setname_np(::pthread_self(), "weft-trace");
  write_all();
  writing.of_process.store(0, std::memory_order_seq_cst);  // who wants something from now on sees this; the others are served
  serve(writing.wanted.load(std::memory_order_seq_cst));
  writing.tid.store(0, std::memory_order_release);
  return nullptr;
}

void write_last_part_at_exit() {
  [[maybe_unused]] static const int failed = std::atexit([] { write_last_part(); });
}

// With all signals blocked, which the new thread inherits.
int create_deaf_thread() noexcept {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::pthread_create(&writing.thread, nullptr, writer_thread, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

// False: not within patience_ns.
bool wait_until_served(std::uint32_t wanted) noexcept {
  const std::int64_t deadline = os::now_ns() + patience_ns;
  for (;;) {
    const std::uint32_t served = writing.served.load(std::memory_order_seq_cst);  // [writer.last_part]
    if (static_cast<std::int32_t>(served - wanted) >= 0) return true;
    if (writing.of_process.load(std::memory_order_seq_cst) == 0) return true;  // the trace has ended
    if (!base::futex_wait_until(writing.served, served, deadline)) return false;
  }
}

}  // namespace

void start_writer(const std::string& path) {
  constexpr const char* who = "weft::trace::start";
  file().open(path, who);
  write_last_part_at_exit();
  writing.of_process.store(::getpid(), std::memory_order_relaxed);
  if (const int error = create_deaf_thread(); error != 0) {
    writing.of_process.store(0, std::memory_order_relaxed);
    file().close();
    throw std::system_error(error, std::system_category(), std::string(who) + ": cannot create a thread");
  }
}

std::error_code finish_writing() {
  ::pthread_join(writing.thread, nullptr);
  free_chunks();
  return file().close();
}

void write_last_part() noexcept {
  if (writing.of_process.load(std::memory_order_seq_cst) != ::getpid() || writer_tid() == ::gettid()) return;
  const std::uint32_t wanted = writing.wanted.fetch_add(1, std::memory_order_seq_cst) + 1;  // [writer.last_part]
  wake_writer();
  for (int times = 0; times < most_times; ++times) {
    const std::uint32_t before = writing.pieces.load(std::memory_order_relaxed);
    if (wait_until_served(wanted) || writing.pieces.load(std::memory_order_relaxed) == before) return;
  }
}

std::int32_t writer_tid() noexcept { return writing.tid.load(std::memory_order_acquire); }

}  // namespace weft::trace
