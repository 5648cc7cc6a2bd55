// The file that a trace goes to.
#pragma once

#include <string>
#include <system_error>

namespace weft::trace {

class output {
 public:
  output() = default;
  output(const output&) = delete;
  output& operator=(const output&) = delete;
  ~output();

  // A new file, or over an old one; throws std::system_error, in which `who` is named.
  void open(const std::string& path, const char* who);
  // Writes the text and empties it. The first failure counts; what comes after it is thrown away.
  void write(std::string& text);
  // The same if there is so much of it that it is worth it.
  void write_if_enough(std::string& text);
  void fail(std::errc why) { error_ = std::make_error_code(why); }
  bool has_failed() const { return static_cast<bool>(error_); }
  // What went wrong since open().
  std::error_code close();

 private:
  int fd_ = -1;
  std::error_code error_;
};

}  // namespace weft::trace
