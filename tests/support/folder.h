// A folder of its own for a test, gone afterwards.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>

namespace test {

class folder {
 public:
  folder() {
    static std::atomic<int> number = 0;
    path_ = std::filesystem::temp_directory_path() / ("weft-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number));
    std::filesystem::create_directory(path_);
  }
  ~folder() { std::filesystem::remove_all(path_); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace test
