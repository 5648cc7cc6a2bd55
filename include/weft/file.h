// Files. Reads and writes of regular files block a thread in the kernel, but no P: the other goroutines run on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ios>
#include <system_error>

#include <weft/buffer.h>
#include <weft/detail/io_object.h>

namespace weft {

class file : public detail::io_object {
 public:
  file() noexcept = default;

  // As for std::fstream. in: must exist. out: created, and emptied unless `in` or `app` is given too. app: created, and every write goes
  // to the end. trunc, with out: emptied, and created. ate: begins at the end. What makes no sense together is std::errc::invalid_argument.
  static file open(const std::filesystem::path& path, std::ios::openmode mode);
  static file open(const std::filesystem::path& path, std::ios::openmode mode, std::error_code& ec);

  // From, or to, the current position, which goes on by as much. 0: end of file.
  std::size_t read(mutable_buffer to);
  std::size_t read(mutable_buffer to, std::error_code& ec);
  // All of it. After an error: how much was written.
  std::size_t write(const_buffer from);
  std::size_t write(const_buffer from, std::error_code& ec);

  // At this offset; the current position stays. read_at() reads until the buffer is full or the file ends. Any number of them at a time;
  // write_at() is std::errc::invalid_argument where every write goes to the end (app).
  std::size_t read_at(mutable_buffer to, std::uint64_t offset);
  std::size_t read_at(mutable_buffer to, std::uint64_t offset, std::error_code& ec);
  std::size_t write_at(const_buffer from, std::uint64_t offset);
  std::size_t write_at(const_buffer from, std::uint64_t offset, std::error_code& ec);

  std::uint64_t size() const;
  std::uint64_t size(std::error_code& ec) const;

  // Until what was written is on the disk.
  void sync();
  void sync(std::error_code& ec);

 private:
  using io_object::io_object;
};

}  // namespace weft
