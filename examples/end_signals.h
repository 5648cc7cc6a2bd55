// A clean end at SIGTERM and Ctrl-C: the signals as a descriptor, which a goroutine waits for as for any other.
#pragma once

#include <weft/weft.h>

#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>

#include <sys/signalfd.h>
#include <unistd.h>

#include "usage.h"

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

// Calls serve(listener), which returns when the listener is closed: that is at the signal. Nobody else comes in then; the connections
// that there still are end with the program.
template <class Serve>
void serve_until(const end_signals& end, std::string_view where, Serve serve) {
  weft::net::listener listener = weft::net::listen_tcp(where);
  weft::wait_group server;
  server.go([&] { serve(listener); });
  say_where(listener);
  end.wait();
  listener.close();
  server.wait();
}

}  // namespace example
