#include "trace/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <utility>

#include "trace/log.h"
#include "trace/perfetto.h"

namespace weft::trace {
namespace {

constexpr std::size_t enough = 256 * 1024;

// Touched by the thread while it runs, and by who controls the trace before and after.
struct {
  int fd = -1;
  pthread_t thread{};
  std::error_code error;
  std::atomic<std::int32_t> tid{0};
} writing;

// The first failure counts; what comes after it is thrown away.
void write_out(std::string& text) {
  for (std::size_t at = 0; at < text.size() && !writing.error;) {
    const ssize_t n = ::write(writing.fd, text.data() + at, text.size() - at);
    if (n > 0) {
      at += static_cast<std::size_t>(n);
    } else if (n == 0) {
      writing.error = std::make_error_code(std::errc::no_space_on_device);
    } else if (errno != EINTR) {
      writing.error = {errno, std::system_category()};
    }
  }
  text.clear();
}

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
    if (writing.error) return;
    try {
      encoder.add(c);
      if (encoder.out().size() >= enough) write_out(encoder.out());
    } catch (const std::exception&) {
      writing.error = std::make_error_code(std::errc::not_enough_memory);
    }
  });
  write_out(encoder.out());
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
  writing.error.clear();
  writing.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (writing.fd < 0) throw std::system_error(errno, std::system_category(), "weft::trace::start: " + path);
  if (const int error = create_deaf_thread(); error != 0) {
    ::close(writing.fd);
    throw std::system_error(error, std::system_category(), "weft::trace::start: cannot create a thread");
  }
}

std::error_code finish_writing() {
  ::pthread_join(writing.thread, nullptr);
  if (::close(writing.fd) != 0 && !writing.error) writing.error = {errno, std::system_category()};
  free_chunks();
  return writing.error;
}

std::int32_t writer_tid() noexcept { return writing.tid.load(std::memory_order_acquire); }

}  // namespace weft::trace
