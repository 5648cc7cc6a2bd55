#include "base/fatal.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

namespace weft::base {
namespace {

constinit std::atomic<void (*)() noexcept> before_abort{nullptr};
constinit std::atomic<end> ending{end::none};
constinit std::atomic<pid_t> announcer{0};

}  // namespace

text& text::operator<<(std::string_view s) noexcept {
  const std::size_t n = std::min(s.size(), capacity - size_);
  std::memcpy(buffer_ + size_, s.data(), n);
  size_ += n;
  return *this;
}

text& text::operator<<(std::uint64_t n) noexcept {
  char digits[20];
  std::size_t at = sizeof digits;
  do {
    digits[--at] = static_cast<char>('0' + n % 10);
    n /= 10;
  } while (n != 0);
  return *this << std::string_view(digits + at, sizeof digits - at);
}

text& text::operator<<(std::int64_t n) noexcept {
  if (n >= 0) return *this << static_cast<std::uint64_t>(n);
  return *this << "-" << (~static_cast<std::uint64_t>(n) + 1);
}

text& text::operator<<(const void* p) noexcept {
  auto n = reinterpret_cast<std::uintptr_t>(p);
  char digits[16];
  std::size_t at = sizeof digits;
  do {
    digits[--at] = "0123456789abcdef"[n % 16];
    n /= 16;
  } while (n != 0);
  return *this << "0x" << std::string_view(digits + at, sizeof digits - at);
}

text& text::quote(std::string_view s) noexcept {
  constexpr std::size_t most = 100;
  *this << "\"";
  for (const char c : s.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte != 0x7f) {
      *this << (c == '"' || c == '\\' ? "\\" : "") << std::string_view(&c, 1);
    } else {
      const char digits[] = {"0123456789abcdef"[byte / 16], "0123456789abcdef"[byte % 16]};
      *this << "\\x" << std::string_view(digits, sizeof digits);
    }
  }
  return *this << (s.size() > most ? "...\"" : "\"");
}

void text::print() noexcept {
  const char* at = buffer_;
  std::size_t left = size_;
  while (left != 0) {
    const ssize_t n = ::write(STDERR_FILENO, at, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // nowhere left to complain
    at += n;
    left -= static_cast<std::size_t>(n);
  }
  size_ = 0;
}

void announce_end() noexcept {
  pid_t nobody = 0;
  announcer.compare_exchange_strong(nobody, ::gettid(), std::memory_order_relaxed);
  foresee_end();
}

void foresee_end() noexcept {
  end none = end::none;
  ending.compare_exchange_strong(none, end::under_way, std::memory_order_release, std::memory_order_relaxed);
}

void tell_end() noexcept { ending.store(end::told, std::memory_order_release); }

end state_of_end() noexcept { return ending.load(std::memory_order_acquire); }

std::int32_t announcer_of_end() noexcept { return announcer.load(std::memory_order_relaxed); }

void fatal(std::string_view message) noexcept {
  announce_end();
  text t;
  t << "fatal error: " << message << "\n";
  t.print();
  do_before_abort();
  std::abort();
}

void do_before_abort() noexcept {
  [[gnu::tls_model("initial-exec")]] static thread_local bool is_dying = false;  // it may die of what is done here
  if (std::exchange(is_dying, true)) return;
  if (const auto last = before_abort.load(std::memory_order_acquire)) last();
}

void set_before_abort(void (*f)() noexcept) noexcept { before_abort.store(f, std::memory_order_release); }

}  // namespace weft::base
