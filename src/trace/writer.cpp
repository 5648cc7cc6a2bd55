#include "trace/writer.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

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
    if (n >= 0) {
      at += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      writing.error = {errno, std::system_category()};
    }
  }
  text.clear();
}

void write_all() {
  perfetto_encoder encoder;
  while (chunk* c = wait_for_chunks()) {
    while (c != nullptr) {
      chunk* next = c->next;
      if (!writing.error) encoder.add(*c);
      give_back(c);
      if (encoder.out().size() >= enough) write_out(encoder.out());
      c = next;
    }
  }
  write_out(encoder.out());
}

void drop_all() {
  while (chunk* c = wait_for_chunks()) {
    while (c != nullptr) {
      chunk* next = c->next;
      give_back(c);
      c = next;
    }
  }
}

void* writer_thread(void*) {
  writing.tid.store(::gettid(), std::memory_order_release);
  ::pthread_setname_np(::pthread_self(), "weft-trace");
  try {
    write_all();
  } catch (const std::bad_alloc&) {
    writing.error = std::make_error_code(std::errc::not_enough_memory);
    drop_all();
  }
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
