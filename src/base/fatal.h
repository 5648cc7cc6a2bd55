// The end of the program when an invariant is broken. On in every build, allocates nothing, takes no lock, and so may
// be called from a signal handler, on any stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::base {

// A line of text in a fixed buffer: what does not fit is cut.
class text {
 public:
  text& operator<<(std::string_view s) noexcept;
  text& operator<<(const char* s) noexcept { return *this << std::string_view(s); }
  text& operator<<(std::uint64_t n) noexcept;
  text& operator<<(std::int64_t n) noexcept;
  text& operator<<(std::uint32_t n) noexcept { return *this << std::uint64_t{n}; }
  text& operator<<(std::int32_t n) noexcept { return *this << std::int64_t{n}; }
  text& operator<<(const void* p) noexcept;

  // As one line between quotation marks: what would end these or the line, or command a terminal, is shown as \" or \xNN; of a
  // long text the beginning.
  text& quote(std::string_view s) noexcept;

  std::string_view view() const noexcept { return {buffer_, size_}; }
  void clear() noexcept { size_ = 0; }
  // Writes the text to stderr, retrying short writes, and empties the buffer.
  void print() noexcept;

 private:
  static constexpr std::size_t capacity = 1024;
  char buffer_[capacity];
  std::size_t size_ = 0;
};

// Somebody is about to end the program, with a report that takes a while; nobody else should be faster, with another exit code: see
// await_the_end() in sched/last_words.h.
//
//   none --announce_end()--> under_way, by this thread --tell_end()--> told      what is left is the program's own business: its
//     |                         ^                                                terminate handler may do anything
//     +--foresee_end()--> under_way, by nobody yet
enum class end : std::uint32_t { none, under_way, told };
void announce_end() noexcept;
void foresee_end() noexcept;
void tell_end() noexcept;
end state_of_end() noexcept;
std::int32_t announcer_of_end() noexcept;  // its thread; 0: nobody yet

// Prints "fatal error: <message>", has the goroutines listed if that is possible where this is called, and aborts.
[[noreturn]] void fatal(std::string_view message) noexcept;

// What is done between the message and the end, once by each thread that dies: the second one waits for the first. Set by
// sched/last_words.cpp.
void set_before_abort(void (*f)() noexcept) noexcept;
void do_before_abort() noexcept;

template <class... Parts>
[[noreturn]] void fatal(const Parts&... parts) noexcept {
  text t;
  (t << ... << parts);
  fatal(t.view());
}

}  // namespace weft::base
