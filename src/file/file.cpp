#include <weft/file.h>

#include <cerrno>
#include <memory>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/blocking.h>

#include "io/calls.h"
#include "io/error.h"
#include "io/fd.h"

namespace weft {
namespace {

struct opened {
  int number = -1;
  int error = 0;
  bool regular = true;  // nothing that the poller can wait for
  bool pipe = false;
};

int flags_of(std::ios::openmode mode) noexcept {
  const bool in = (mode & std::ios::in) != 0;
  const bool app = (mode & std::ios::app) != 0;
  const bool out = (mode & std::ios::out) != 0 || app;
  if (!in && !out) return -1;
  int flags = O_CLOEXEC | O_NOCTTY | (in && out ? O_RDWR : out ? O_WRONLY : O_RDONLY);
  const bool trunc = (mode & std::ios::trunc) != 0;
  if (trunc && (!out || app)) return -1;
  const bool empties = trunc || (out && !in && !app);
  if (app) flags |= O_APPEND;
  if (empties) flags |= O_TRUNC;
  if (app || empties || (out && !in)) flags |= O_CREAT;
  return flags;
}

[[gnu::noinline]] opened open_and_look(const char* path, int flags, bool at_end) noexcept {
  opened o;
  do {
    o.number = ::open(path, flags, 0666);
  } while (o.number < 0 && errno == EINTR);
  if (o.number < 0) {
    o.error = errno;
    return o;
  }
  struct stat st{};
  ::fstat(o.number, &st);
  o.pipe = S_ISFIFO(st.st_mode);
  o.regular = !o.pipe && !S_ISSOCK(st.st_mode) && !::isatty(o.number);
  if (!o.regular) ::fcntl(o.number, F_SETFL, (flags & O_APPEND) | O_NONBLOCK);
  if (at_end) ::lseek(o.number, 0, SEEK_END);
  return o;
}

// A call that says "interrupted" is made again.
template <class Call>
long uninterrupted(Call call) {
  long n;
  do {
    n = call();
  } while (n == -EINTR);
  return n;
}

// An operation whose calls block the thread, if it is a regular file's. The region ends last: whoever has to wait for a P at its end,
// or freezes there, has let go of the file.
class file_operation {
 public:
  file_operation(io::fd* fd, io::direction which) : op_(fd, which) {
    if (op_.error() == 0 && op_.file().blocking) region_.emplace();
  }

  // Repeats the call until it says something else than "interrupted" or "wait".
  template <class Call>
  long perform(Call call) {
    if (op_.error() != 0) return -op_.error();
    if (!region_) return op_.run(call);
    return uninterrupted([&] { return call(op_.file().number()); });
  }

 private:
  std::optional<blocking_region> region_;
  io::operation op_;
};

// Until all of it is done, the file ends (0) or an error comes.
template <class Perform>
std::size_t perform_until_done(std::size_t size, std::error_code& ec, Perform perform) {
  std::size_t done = 0;
  long n = 0;
  do {
    n = perform(done);
    if (n > 0) done += static_cast<std::size_t>(n);
  } while (n > 0 && done < size);
  io::set(ec, n < 0 ? static_cast<int>(-n) : 0);
  return done;
}

// At the file's position: one at a time in each direction.
template <class Call>
std::size_t perform_all(io::fd* fd, io::direction which, std::size_t size, std::error_code& ec, Call call) {
  file_operation op(fd, which);
  return perform_until_done(size, ec, [&](std::size_t done) {
    return op.perform([&](int number) { return call(number, done); });
  });
}

// Elsewhere in the file: any number at a time.
template <class Call>
std::size_t perform_at(io::fd* fd, std::size_t size, std::error_code& ec, Call call) {
  std::optional<blocking_region> region;  // ends last
  const io::brief_use use(fd);
  if (use.error() == 0) region.emplace();
  return perform_until_done(size, ec, [&](std::size_t done) -> long {
    if (use.error() != 0) return -use.error();
    return uninterrupted([&] { return call(use.file().number(), done); });
  });
}

// Runs f, which returns 0 or an error number, in a blocking call.
template <class F>
void use_briefly(io::fd* fd, std::error_code& ec, F f) {
  const io::brief_use use(fd);
  io::set(ec, use.error() != 0 ? use.error() : blocking([&] { return f(use.file().number()); }));
}

const char* at(const_buffer b, std::size_t offset) noexcept { return static_cast<const char*>(b.data()) + offset; }
char* at(mutable_buffer b, std::size_t offset) noexcept { return static_cast<char*>(b.data()) + offset; }

}  // namespace

file file::open(const std::filesystem::path& path, std::ios::openmode mode, std::error_code& ec) {
  const int flags = flags_of(mode);
  if (flags < 0) {
    io::set(ec, EINVAL);
    return {};
  }
  const opened o = blocking([&] { return open_and_look(path.c_str(), flags, (mode & std::ios::ate) != 0); });
  io::set(ec, o.error);
  if (o.error != 0) return {};
  auto* fd = new io::fd(o.number);
  fd->blocking = o.regular;
  fd->signals_pipe = o.pipe;
  fd->appends = (flags & O_APPEND) != 0;
  return file(fd);
}

file file::open(const std::filesystem::path& path, std::ios::openmode mode) {
  std::error_code ec;
  file f = open(path, mode, ec);
  if (ec) throw std::filesystem::filesystem_error("weft::file::open", path, ec);
  return f;
}

std::size_t file::read(mutable_buffer to, std::error_code& ec) {
  file_operation op(fd_, io::reading);
  const long n = op.perform([&](int number) { return io::call_read(number, to.data(), to.size()); });
  io::set(ec, n < 0 ? static_cast<int>(-n) : 0);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

std::size_t file::write(const_buffer from, std::error_code& ec) {
  const bool pipe = fd_ != nullptr && fd_->signals_pipe;
  return perform_all(fd_, io::writing, from.size(), ec, [&](int number, std::size_t done) {
    const auto call = pipe ? &io::call_write_without_sigpipe : &io::call_write;
    return call(number, at(from, done), from.size() - done);
  });
}

std::size_t file::read_at(mutable_buffer to, std::uint64_t offset, std::error_code& ec) {
  return perform_at(fd_, to.size(), ec, [&](int number, std::size_t done) {
    return io::call_pread(number, at(to, done), to.size() - done, offset + done);
  });
}

std::size_t file::write_at(const_buffer from, std::uint64_t offset, std::error_code& ec) {
  return perform_at(fd_, from.size(), ec, [&, appends = fd_ != nullptr && fd_->appends](int number, std::size_t done) -> long {
    if (appends) return -EINVAL;  // the system would write it at the end
    return io::call_pwrite(number, at(from, done), from.size() - done, offset + done);
  });
}

std::uint64_t file::size(std::error_code& ec) const {
  std::uint64_t result = 0;
  use_briefly(fd_, ec, [&](int number) {
    struct stat st{};
    if (::fstat(number, &st) != 0) return errno;
    result = static_cast<std::uint64_t>(st.st_size);
    return 0;
  });
  return result;
}

void file::sync(std::error_code& ec) {
  use_briefly(fd_, ec, [](int number) { return ::fsync(number) == 0 ? 0 : errno; });
}

std::size_t file::read(mutable_buffer to) {
  std::error_code ec;
  const std::size_t n = read(to, ec);
  io::throw_if(ec, "weft::file::read");
  return n;
}

std::size_t file::write(const_buffer from) {
  std::error_code ec;
  const std::size_t n = write(from, ec);
  io::throw_if(ec, "weft::file::write");
  return n;
}

std::size_t file::read_at(mutable_buffer to, std::uint64_t offset) {
  std::error_code ec;
  const std::size_t n = read_at(to, offset, ec);
  io::throw_if(ec, "weft::file::read_at");
  return n;
}

std::size_t file::write_at(const_buffer from, std::uint64_t offset) {
  std::error_code ec;
  const std::size_t n = write_at(from, offset, ec);
  io::throw_if(ec, "weft::file::write_at");
  return n;
}

std::uint64_t file::size() const {
  std::error_code ec;
  const std::uint64_t n = size(ec);
  io::throw_if(ec, "weft::file::size");
  return n;
}

void file::sync() {
  std::error_code ec;
  sync(ec);
  io::throw_if(ec, "weft::file::sync");
}

}  // namespace weft
