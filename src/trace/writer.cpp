#include "trace/writer.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <exception>
#include <utility>

#include "trace/log.h"
#include "trace/output.h"
#include "trace/perfetto.h"

namespace weft::trace {
namespace {

// Touched by the thread while it runs, and by who controls the trace before and after.
struct {
  output file;
  pthread_t thread{};
  std::atomic<std::int32_t> tid{0};
} writing;

// Calls use(chunk) for each until the trace has ended, and gives it back, whatever happens.
template <class Use>
void for_each_chunk(Use use) {
  while (chunk* first = wait_for_chunks()) {
    while (chunk* c = std::exchange(first, first != nullptr ? first->next : nullptr)) {
      struct returned {
        chunk* c;
        ~returned() { give_back(c); }
      } guard{c};
      use(*c);
    }
  }
}

// What cannot be kept in memory or on disk is thrown away; the first failure is what stop() tells.
void write_all() {
  perfetto_encoder encoder;
  for_each_chunk([&](const chunk& c) {
    if (writing.file.has_failed()) return;
    try {
      encoder.add(c);
      writing.file.write_if_enough(encoder.out());
    } catch (const std::exception&) {
      writing.file.fail(std::errc::not_enough_memory);
    }
  });
  writing.file.write(encoder.out());
}

void* writer_thread(void*) {
  writing.tid.store(::gettid(), std::memory_order_release);
  ::pthread_setname_np(::pthread_self(), "weft-trace");
  write_all();
  writing.tid.store(0, std::memory_order_release);
  return nullptr;
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

}  // namespace

void start_writer(const std::string& path) {
  constexpr const char* who = "weft::trace::start";
  writing.file.open(path, who);
  if (const int error = create_deaf_thread(); error != 0) {
    writing.file.close();
    throw std::system_error(error, std::system_category(), std::string(who) + ": cannot create a thread");
  }
}

std::error_code finish_writing() {
  ::pthread_join(writing.thread, nullptr);
  free_chunks();
  return writing.file.close();
}

std::int32_t writer_tid() noexcept { return writing.tid.load(std::memory_order_acquire); }

}  // namespace weft::trace
