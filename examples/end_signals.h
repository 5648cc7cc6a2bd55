// A clean end at SIGTERM and Ctrl-C: the signals as a descriptor, which a goroutine waits for as for any other.
#pragma once

#include <weft/weft.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include <sys/signalfd.h>
#include <unistd.h>

namespace example {

// To be made before weft::run(), by the thread that calls it: the threads of the runtime inherit its mask, and a signal that
// any thread does not block would end the program as ever.
class end_signals {
 public:
  end_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
  }
  end_signals(const end_signals&) = delete;
  ~end_signals() { ::close(fd_); }

  // Parks the goroutine until there is one.
  void wait() const { weft::pollable(fd_).wait_readable(); }

 private:
  int fd_;
};

}  // namespace example
